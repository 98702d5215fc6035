package text

import (
	"encoding/json"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// AccessRules writes one rule a line, as the manual shows them.
func AccessRules(rules []openstack.AccessRule) (string, error) {
	lines := make([]string, len(rules))
	for i, rule := range rules {
		line, err := json.Marshal(rule)
		if err != nil {
			return "", err
		}
		lines[i] = "  " + strings.NewReplacer(`":"`, `": "`, `","`, `", "`).Replace(string(line))
	}
	return "[\n" + strings.Join(lines, ",\n") + "\n]\n", nil
}
