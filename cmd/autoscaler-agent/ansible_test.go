package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAnsibleExample plays what examples/ansible would run: the agent's commands are executed as
// far as they change nothing, in the order of the tasks. It has no setting of the agent, as a
// machine has none before `install --set`.
func TestAnsibleExample(t *testing.T) {
	plain(t)
	const play = "../../examples/ansible/leader.yml"
	data, err := os.ReadFile(play)
	if err != nil {
		t.Fatal(err)
	}
	type module struct{ Cmd, Validate, Dest string }
	var plays []struct {
		Tasks []struct {
			Name    string
			Command *module `json:"ansible.builtin.command"`
			Copy    *module `json:"ansible.builtin.copy"`
		}
	}
	if err := yaml.Unmarshal(data, &plays); err != nil || len(plays) != 1 {
		t.Fatalf("%d plays, %v", len(plays), err)
	}
	var order []string
	for _, task := range plays[0].Tasks {
		switch {
		case task.Command != nil:
			words := strings.Fields(strings.ReplaceAll(task.Command.Cmd, "{{ cluster }}", "mycluster"))
			order = append(order, words[1])
			var out, errout bytes.Buffer
			// Without systemd it ends before the first step; a wrong command line ends with 2.
			if code := execute(t.Context(), append(words[1:], "--dry-run"), &out, &errout); words[0] != "autoscaler-agent" || code == exitUsage {
				t.Errorf("%s: %q: exit code %d, %s", task.Name, words, code, errout.String())
			}
		case task.Copy != nil && task.Copy.Validate != "":
			order = append(order, "validate")
			for text, want := range map[string]int{"groups: {a: {price: 1}}\n": exitOK, "headroom: [{name: a, cpu: 1}]\n": exitOK, "nova: {groups: []}\n": exitOK, "groups: {a: {prise: 1}}\n": exitFailed} {
				file := filepath.Join(t.TempDir(), "source")
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				words := strings.Fields(strings.ReplaceAll(task.Copy.Validate, "%s", file))
				var out, errout bytes.Buffer
				if code := execute(t.Context(), words[1:], &out, &errout); code != want {
					t.Errorf("%s of %q: exit code %d, want %d: %s%s", task.Copy.Validate, text, code, want, out.String(), errout.String())
				}
			}
		}
	}
	if !slices.Equal(order, []string{"install", "validate"}) {
		t.Errorf("the order is %q: groups.yaml has its place only once the agent is installed", order)
	}
	if _, err := exec.LookPath("ansible-playbook"); err != nil {
		t.Log("ansible-playbook is not here: the syntax was read as YAML alone")
		return
	}
	if out, err := exec.Command("ansible-playbook", "-i", "leaders,", "--syntax-check", play).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
