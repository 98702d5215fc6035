package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// sectionsOfSettings are the headings of docs/configuration.md, by the beginning of a variable's name.
var sectionsOfSettings = []struct{ begins, title string }{
	{"LEASE_", "Several leaders"},
	{"SCALER_", "The scaler's rhythm"},
	{"SCALING_", "What is bought, and what goes"},
	{"OBSERVE_", "How cluster and cloud are read"},
	{"KUBELET_", "What workers keep back"},
	{"AWS_", "AWS"},
	{"OPENSTACK_", "OpenStack"},
	{"NOVA_", "OpenStack servers"},
	{"MAGNUM_", "Magnum"},
	{"CLUSTERAPI_", "Cluster API"},
	{"EXTERNALGRPC_", "Plug-ins"},
	{"CSR_", "Certificates"},
	{"NODECLEANER_", "Nodes of dead machines"},
	{"BOOTSTRAP_", "Tokens and join values"},
	{"", "The agent"},
}

// TestConfigurationPage: docs/configuration.md lists every variable as the fields of the configuration have
// it: name, default and sentence.
func TestConfigurationPage(t *testing.T) {
	const page = "../docs/configuration.md"
	const begin, end = "<!-- the settings begin: go test ./agent -run TestConfigurationPage -update -->\n", "<!-- the settings end -->\n"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	old, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the marks of the settings are not there")
	}
	list := settingsList()
	switch {
	case old == list:
	case *updatePages:
		if err := os.WriteFile(page, []byte(head+begin+list+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("the settings are not those of the source; run: go test ./agent -run TestConfigurationPage -update")
	}
}

func settingsList() string {
	rows := map[string]string{}
	for _, v := range config.Variables() {
		for _, s := range sectionsOfSettings {
			if strings.HasPrefix(v.Name, config.Prefix+"_"+s.begins) {
				row := fmt.Sprintf("- `%s`", v.Name)
				if v.Default != "" {
					row += fmt.Sprintf(" (`%s`)", v.Default)
				}
				rows[s.title] += row + ": " + v.About + "\n"
				break
			}
		}
	}
	var out strings.Builder
	last := len(sectionsOfSettings) - 1
	for _, s := range append(sectionsOfSettings[last:], sectionsOfSettings[:last]...) {
		fmt.Fprintf(&out, "\n### %s\n\n%s", s.title, rows[s.title])
	}
	return out.String() + "\n"
}
