package console

import (
	"regexp"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// TestDiagnose: where a machine stopped, and why, is in the line.
func TestDiagnose(t *testing.T) {
	const p = "[   12.345678] cloud-init[812]: autoscaler-agent: phase="
	for name, c := range map[string]struct {
		text    string
		pending bool
		want    []string
	}{
		"nothing yet":                  {"", true, []string{"console is empty", "does not run yet"}},
		"nothing":                      {"\r\n", false, []string{"console is empty", "minutes late"}},
		"another image":                {"Debian GNU/Linux 13 ttyS0\nlogin: ", false, []string{"has written nothing", "userdata render"}},
		"panic":                        {"Kernel panic - not syncing: VFS", false, []string{"kernel panicked"}},
		"checksum":                     {p + "start\n" + p + "install\n" + p + "download file=kubelet\r\n" + p + "failed reason=checksum file=kubelet\n" + p + "failed rc=1\n", false, []string{`after "download file=kubelet"`, "kubelet: ", "SHA-256"}},
		"dead mirror":                  {p + "start\n" + p + "failed reason=download file=runc", false, []string{"runc: ", "could not be fetched"}},
		"full disk":                    {p + "start\n" + p + "failed reason=no-space\n", false, []string{"disk is full"}},
		"attest":                       {p + "attest\n" + p + "failed reason=attest rule=A12\n", false, []string{"rule A12", "attested-join.md"}},
		"attest, nobody":               {p + "attest\n" + p + "failed reason=attest-unreachable\n", false, []string{"listener does not answer"}},
		"join":                         {p + "join node=w-1\n" + p + "retry left=4\n" + p + "failed reason=kubeadm-join\n", false, []string{`after "retry left=4"`, "check --join"}},
		"a name that is taken":         {p + "join node=w-1\n" + p + "failed reason=node-name node=w-1\n", false, []string{"has the machine's name already", "explain node"}},
		"changed on its way":           {p + "join node=w-1\n" + p + "failed reason=cluster-info-signature\n", false, []string{"or somebody changed cluster-info"}},
		"waits for its request":        {p + "start\n" + p + "join node=w-1\n", false, []string{`in "join node=w-1"`, "explain csr"}},
		"waits for the leader":         {p + "attest\n" + p + "attest left=59 reason=A10\n", false, []string{"A10"}},
		"joined":                       {p + "start\n" + p + "joined\n", false, []string{"came to its end", "journalctl -u kubelet"}},
		"an unknown reason":            {p + "start\n" + p + "failed reason=meteor\n", false, []string{"meteor"}},
		"a script that ended":          {p + "services\n" + p + "failed rc=127\n", false, []string{`after "services"`, "a command of that phase failed"}},
		"a warning is no end":          {p + "install\n" + p + "warning reason=modules\n" + p + "failed rc=1\n", false, []string{`after "install"`}},
		"it tries again":               {p + "start\n" + p + "join node=w\n" + p + "failed reason=dns node=w\n" + p + "start\n" + p + "install\n" + p + "join node=w\n", false, []string{`tries again ("join node=w") after "failed reason=dns`, "does not resolve the name"}},
		"it tries again in the script": {p + "start\n" + p + "join node=w\n" + p + "retry left=4 reason=kubelet-swap\n", false, []string{"tries again", "has swap on"}},
		"a clock":                      {p + "join node=w\n" + p + "failed reason=clock clock=-3600 node=w\n", false, []string{"clock is wrong", "1h0m0s behind"}},
		"a clock beside the cause":     {p + "join node=w\n" + p + "failed reason=join-token clock=86400 node=w\n", false, []string{"token of the user data has ended", "24h0m0s ahead"}},
		"a clock that STS refuses":     {p + "attest\n" + p + "attest left=59 reason=A4\n", false, []string{"clock is wrong", "A4"}},
		"a download without DNS":       {p + "download file=runc\n" + p + "failed reason=download file=runc curl=6\n", false, []string{"DNS does not resolve"}},
		"checks":                       {p + "join node=w\n" + p + "failed reason=preflight checks=Swap,Port-10250 node=w\n", false, []string{"Swap,Port-10250"}},
		"the last boot counts":         {p + "start\n" + p + "failed reason=checksum file=a\n" + p + "start\n" + p + "join node=w\n", false, []string{`in "join node=w"`}},
		"a terminal's own colors":      {"\x1b[0;32m" + p + "failed reason=down\x1b[31mload file=x\n", false, []string{"failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Diagnose(c.text, c.pending).String()
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("%q has no %q", got, w)
				}
			}
			if strings.ContainsAny(got, "\x1b\r\n") {
				t.Errorf("%q: a terminal would act on it", got)
			}
		})
	}
}

// FuzzDiagnose: whatever root of a machine writes, a diagnosis is short, plain and has no
// token.
func FuzzDiagnose(f *testing.F) {
	f.Add("autoscaler-agent: phase=failed reason=checksum file=kubelet\n")
	f.Add("autoscaler-agent: phase=join token=abcdef.0123456789abcdef\n")
	f.Add("autoscaler-agent: phase=\x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		d := Diagnose(text, false)
		line := d.String()
		if len(line) > 900 || len(d.Marks) > maxMarks || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%d bytes, %d marks: %q", len(line), len(d.Marks), line)
		}
		if strings.Contains(line, "token=") && strings.Contains(text, "token=") && !strings.Contains(text, "_token=") && strings.Contains(line, " token=") {
			t.Errorf("%q tells a token", line)
		}
	})
}

// TestEveryReasonHasACause: whatever a script of this version gives as its reason is told of in
// words, with a remedy.
func TestEveryReasonHasACause(t *testing.T) {
	var scripts string
	for _, cloud := range userdata.Clouds() {
		for _, store := range []string{"", "raid10"} {
			for _, attest := range []bool{false, true} {
				s := userdata.Spec{Cloud: cloud, KubernetesVersion: "v1.30.14", Reservation: userdata.DefaultReservation(),
					Join: userdata.Join{Endpoint: "k8s.example.net:6443", Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:" + strings.Repeat("0a", 32)}}}
				if cloud == "aws" {
					s.InstanceStore = store
				}
				script, err := userdata.Render(s)
				if err != nil {
					t.Fatal(err)
				}
				if scripts += string(script); attest {
					scripts += userdata.AttestSteps
				}
			}
		}
	}
	found := map[string]bool{"install": true, "services": true} // reasons that are a phase's name
	for _, m := range regexp.MustCompile(`reason=([a-z][a-z-]*[a-z])`).FindAllStringSubmatch(scripts, -1) {
		found[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`\) echo ([a-z-]+) ;;|why=([a-z-]+)`).FindAllStringSubmatch(scripts, -1) {
		found[m[1]+m[2]] = true
	}
	for _, warning := range []string{"modules", "sysctl", "sandbox-image"} {
		delete(found, warning)
	}
	delete(found, "")
	for reason := range found {
		if likely, _ := failure(Mark{Phase: "failed", Values: map[string]string{"reason": reason}}); strings.HasPrefix(likely, "for the reason") {
			t.Errorf("nothing is told of reason %s", reason)
		}
	}
	t.Logf("%d reasons", len(found))
	if len(found) < 30 {
		t.Errorf("only %d reasons were found: %v", len(found), found)
	}
}
