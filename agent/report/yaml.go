package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML writes whatever marshals to JSON as YAML, with the fields in the order in which
// JSON has them: a page for people keeps what matters on top, where sigs.k8s.io/yaml
// sorts by name.
func YAML(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil { // JSON is YAML
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	block(&doc)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return out.Bytes(), nil
}

var (
	// plainText begins with a letter and has nothing that YAML gives a meaning.
	plainText = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_./ ()-]*[A-Za-z0-9_./()-])?$`)
	// yamlWords are plain words that YAML 1.1 or 1.2 reads as something else than text.
	yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)

// block takes JSON's brackets away, and the quotes of texts that nothing reads otherwise.
func block(n *yaml.Node) {
	quoted := n.Kind == yaml.ScalarNode && n.Style&yaml.DoubleQuotedStyle != 0
	if n.Kind != yaml.ScalarNode && len(n.Content) > 0 || quoted && plainText.MatchString(n.Value) && !slices.Contains(yamlWords, strings.ToLower(n.Value)) {
		n.Style = 0
	}
	for _, c := range n.Content {
		block(c)
	}
}
