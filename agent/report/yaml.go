package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// YAML writes whatever marshals to JSON as YAML, with the fields in the order in which
// JSON has them: a page for people keeps what matters on top, where sigs.k8s.io/yaml
// sorts by name.
func YAML(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	w := yamlWriter{d: json.NewDecoder(bytes.NewReader(data))}
	w.d.UseNumber()
	if err := w.value(0, false); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return w.out.Bytes(), nil
}

type yamlWriter struct {
	d   *json.Decoder
	out bytes.Buffer
}

// value writes the next value. The line holds "key:", "-" or nothing so far; dash
// tells that it is "-", after which the first field of an object follows at once.
func (w *yamlWriter) value(depth int, dash bool) error {
	t, err := w.d.Token()
	if err != nil {
		return err
	}
	d, compound := t.(json.Delim)
	switch {
	case !compound:
		w.space()
		w.out.WriteString(yamlScalar(t) + "\n")
		return nil
	case !w.d.More():
		w.space()
		w.out.WriteString(map[json.Delim]string{'{': "{}\n", '[': "[]\n"}[d])
		_, err = w.d.Token()
		return err
	}
	if !dash && w.out.Len() > 0 {
		w.out.WriteByte('\n')
	}
	for first := true; w.d.More(); first = false {
		if dash && first {
			w.out.WriteByte(' ')
		} else {
			w.out.WriteString(strings.Repeat("  ", depth))
		}
		if d == '[' {
			w.out.WriteByte('-')
			err = w.value(depth+1, true)
		} else if t, err = w.d.Token(); err == nil {
			w.out.WriteString(yamlScalar(t) + ":")
			err = w.value(depth+1, false)
		}
		if err != nil {
			return err
		}
	}
	_, err = w.d.Token()
	return err
}

// space sets a value off from its key or dash.
func (w *yamlWriter) space() {
	if b := w.out.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
		w.out.WriteByte(' ')
	}
}

// yamlWords are plain words that YAML 1.1 or 1.2 reads as something else than text.
var yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// yamlScalar writes a JSON scalar. A text that could be read as anything else is
// quoted as in JSON, which YAML reads alike.
func yamlScalar(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(t)
	case json.Number:
		return t.String()
	case string:
		plain := t != "" && !strings.HasSuffix(t, " ") && !slices.Contains(yamlWords, strings.ToLower(t))
		for i, r := range t {
			letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
			plain = plain && (letter || i > 0 && (r >= '0' && r <= '9' || strings.ContainsRune("_./- ()", r)))
		}
		if plain {
			return t
		}
		b, err := json.Marshal(t)
		if err != nil {
			return `""` // a string always marshals
		}
		return string(b)
	}
	return ""
}
