package quickstart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// refusal is what the stand-ins of this file answer to the call that they refuse.
const refusal = "An error occurred (RequestLimitExceeded): the test refuses this call"

// TestScriptsStopAtTheFirstFailure: whichever call of a script the cloud refuses, the script ends there, prints the cloud's words
// and no result. The command of the cloud is a stand-in that answers every question with one of two worlds: one in which nothing is
// there yet, and one in which all is; TestQuickstartAWS runs the scripts with AWS's own command.
func TestScriptsStopAtTheFirstFailure(t *testing.T) {
	for _, c := range []struct{ name, line string }{
		{"aws", "aws.sh leader --cluster demo --admin 203.0.113.7/32 --key id.pub"},
		{"aws", "aws.sh workers --cluster demo --user-data worker.sh --type m5.large,m5a.large --spot yes"},
		{"openstack", "openstack.sh leader --cluster demo --admin 203.0.113.7/32 --key id.pub --network machines --external public --flavor m1.large"},
	} {
		for _, there := range []string{"", "is-there"} {
			calls, out := refuse(t, c.name, c.line, there, 0)
			if calls < 8 || strings.Contains(out, refusal) {
				t.Fatalf("%s with %q there: %d calls, %s", c.line, there, calls, out)
			}
			for n := 1; n <= calls; n++ {
				made, out := refuse(t, c.name, c.line, there, n)
				switch {
				case made != n:
					t.Errorf("%s with %q there: call %d is refused, and %d follow:\n%s", c.line, there, n, made-n, out)
				case !strings.Contains(out, refusal) || strings.Contains(out, "LEADER=") || strings.Contains(out, "GROUP="):
					t.Errorf("%s with %q there: call %d is refused, and it prints\n%s", c.line, there, n, out)
				}
			}
		}
	}
}

// refuse runs a line with a stand-in that refuses its n-th call, and tells how many calls were made. n 0: none is refused, and the
// script has to end well.
func refuse(t *testing.T, command, line, there string, n int) (calls int, out string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"calls": "0\n", "id.pub": "ssh-ed25519 AAAA ops\n", "worker.sh": "#!/bin/sh\n",
		"ssh-keyscan": "#!/bin/sh\necho a key\n", "sleep": "#!/bin/sh\n",
		command: fmt.Sprintf(`#!/bin/sh
read -r n <"$DESK/calls"
n=$((n + 1))
echo "$n" >"$DESK/calls"
[ "$n" -ne %d ] || { echo '%s' >&2; exit 254; }
case "$*" in
*create-auto*|*update-auto*|*create-launch*|*-tags*) ;;
*instance-state-name,Values=stopp*) ;;
*describe-instance-types*) echo 0 ;;
*describe-images*Architecture*) echo x86_64 ;;
*OnDemandPercentage*) echo 0 ;;
*VolumeSize*|*MinSize*|*MaxSize*) echo 7 ;;
*InstanceType*) echo m5.large ;;
*'describe-security-groups'*'demo-worker'*|*describe-vpcs*|*describe-subnets*|*get-parameter*|*describe-images*|*get-caller-identity*|*create*|*allocate*|*run-instances*) echo made-1 ;;
'port show'*) echo '"ip_address": "10.0.0.9"' ;;
'server show'*) echo ACTIVE ;;
'configuration show'*) echo 'auth_url="https://keystone.example.net"' ;;
'keypair list'*) echo "$THERE" ;;
*describe*|*list*) [ -z "$THERE" ] || echo "$THERE demo-worker" ;;
esac
`, n, refusal),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	name, rest, _ := strings.Cut(line, " ")
	cmd := exec.Command("sh", "-c", script(t, name)+" "+rest)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DESK="+dir, "THERE="+there)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Run(); (err != nil) != (n > 0) {
		t.Errorf("%s with %q there, call %d refused: %v\n%s", line, there, n, err, printed.String())
	}
	made, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err == nil {
		calls, err = strconv.Atoi(strings.TrimSpace(string(made)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return calls, printed.String()
}
