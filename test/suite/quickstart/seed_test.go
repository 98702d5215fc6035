package quickstart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// seed004 are the steps of the page that this project replaces, "Manual Autoscaling
// Kubernetes Setup" of Toil's wiki, in its order.
var seed004 = []string{
	"choose cluster name, region, zone", "substitute the name in two scripts", "choose the maximum size", "choose the Owner tag", "look up the image",
	"key pair, RSA only", "security group, open to itself", "leader role with 60 rights on everything", "worker role", "leader instance, volume, tags",
	"SSH, run the leader script", "CNI plug-ins, crictl, kubelet without checksums", "kubeadm init with serverTLSBootstrap", "flannel", "kubelet-rubber-stamp",
	"Cluster Autoscaler, edited with sed", "metrics-server, edited with sed", "clean-up loop in bash", "token that never expires, CA hash by openssl",
	"endpoint that is a host name", "world-readable /etc/worker.env", "paste three values into the worker script", "launch template, script pasted in",
	"worker script that joins at every boot", "Auto Scaling group, five tags", "submit work", "the last worker stays for metrics-server", "RAID of local disks",
	"a reboot changes addresses",
}

// TestSeed004: README.md says of every step of the seed what replaces it, and
// names a test that exists.
func TestSeed004(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| by hand | here | tested by |\n|---|---|---|\n")
	table, _, _ = strings.Cut(strings.TrimSpace(table), "\n\n")
	var steps []string
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("not three cells: %s", line)
		}
		steps = append(steps, cells[0])
		dir, name, ok := strings.Cut(strings.Trim(cells[2], "`"), " ")
		if !ok || cells[1] == "" {
			t.Errorf("%s: no replacement, or no test by its package and name: %s", cells[0], line)
			continue
		}
		if !defined(t, dir, name) {
			t.Errorf("%s: %s has no %s", cells[0], dir, name)
		}
	}
	if !slices.Equal(steps, seed004) {
		t.Errorf("the page has the steps\n%s\nthe seed\n%s", strings.Join(steps, "\n"), strings.Join(seed004, "\n"))
	}
	if defined(t, "userdata", "TestNobodyWroteThis") {
		t.Error("a test that is not there is found")
	}
}

// defined looks for a test in a package of the repository. userdata/leader is taken for
// granted where it is not there at all: leader-config comes with it.
func defined(t *testing.T, dir, name string) bool {
	t.Helper()
	root := filepath.Join("../../..", dir)
	if _, err := os.Stat(root); os.IsNotExist(err) && dir == "userdata/leader" {
		t.Logf("%s is not in this tree: %s is not looked for", dir, name)
		return true
	}
	files, err := filepath.Glob(filepath.Join(root, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
	})
}
