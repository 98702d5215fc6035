package lint

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

func rules(found []Finding) string {
	var out []string
	for _, f := range found {
		kind := "w"
		if f.Fails {
			kind = "f"
		}
		out = append(out, fmt.Sprintf("%s%s:%d", f.Rule, kind, f.Line))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestSeed: the bash script of the seed is read and each of its faults is named.
func TestSeed(t *testing.T) {
	text, err := os.ReadFile("testdata/seed004.sh")
	if err != nil {
		t.Fatal(err)
	}
	got := rules(Check(text, Options{Cloud: "aws", System: "flatcar"}))
	want := "W10f:7 W10f:8 W10f:9 W3f:0 W4f:54 W4w:20 W7w:35 W7w:37 W7w:40 W7w:43 W7w:45 W9f:59 W9w:0 W9w:40"
	if got != want {
		t.Errorf("findings %s, want %s", got, want)
	}
	if got := rules(Check(text, Options{System: "debian"})); !strings.Contains(got, "W3w:0") {
		t.Errorf("on Debian a script runs once: %s", got)
	}
}

// TestOwnUserData: what the generator makes has no finding.
func TestOwnUserData(t *testing.T) {
	for _, cloud := range userdata.Clouds() {
		for _, system := range append([]string{""}, userdata.Systems()...) {
			for _, format := range userdata.Formats() {
				s := userdata.Spec{
					Cloud: cloud, System: system, Format: format, KubernetesVersion: "v1.36.3", Reservation: userdata.DefaultReservation(),
					Join: userdata.Join{Endpoint: "k8s.example.net:6443", Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:" + strings.Repeat("0a", 32)}},
				}
				out, err := userdata.Render(s)
				if err != nil {
					continue // the two do not go together; TestMatrix of userdata says which
				}
				if found := Check(out, Options{Cloud: cloud, System: system}); len(found) > 0 {
					t.Errorf("%s %s %s: %+v", cloud, system, format, found)
				}
			}
		}
	}
}

// TestAttestedUserData: user data that attests has no finding in any format, and what it
// holds compressed is judged: a secret in a hook is found.
func TestAttestedUserData(t *testing.T) {
	ca, err := os.ReadFile("../testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range userdata.Formats() {
		s := userdata.Spec{
			Cloud: "aws", Format: format, KubernetesVersion: "v1.36.3", Reservation: userdata.DefaultReservation(),
			Join: userdata.Join{Endpoint: "k8s.example.net:6443", Attest: "leader.example.net:6444", CACert: ca, CACertHashes: []string{"sha256:0d5ab4e5308b73414847abcbcf7ea8ed2f42170faab0634ed9f41288b75fd2e4"}},
		}
		out, err := userdata.Render(s)
		if err != nil {
			t.Fatal(err)
		}
		if found := Check(out, Options{Cloud: "aws"}); len(found) > 0 {
			t.Errorf("%s: %+v", format, found)
		}
		s.BeforeJoin = []byte("#!/bin/sh\nKEY=AKIAIOSFODNN7EXAMPLE\n")
		if out, err = userdata.Render(s); err != nil {
			t.Fatal(err)
		}
		if found := rules(Check(out, Options{Cloud: "aws"})); !strings.HasPrefix(found, "W2f:") || strings.Contains(found, " ") {
			t.Errorf("%s: findings %q, want the secret of the hook alone", format, found)
		}
		if format != "script" {
			continue
		}
		cut := strings.Replace(string(out), "H4sI", "AAAA", 1)
		if found := rules(Check([]byte(cut), Options{Cloud: "aws"})); found != "W6f:0" {
			t.Errorf("a script that does not unpack: %q", found)
		}
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func TestRules(t *testing.T) {
	const guard = "[ -e /etc/kubernetes/kubelet.conf ] && exit 0\n"
	for _, c := range []struct {
		text, want string
		o          Options
	}{
		{"#!/bin/sh\n" + strings.Repeat("#", 16384), "W1f:0", Options{Cloud: "aws"}},
		{"#!/bin/sh\n" + strings.Repeat("#", 15300), "", Options{Cloud: "aws"}},
		{"#!/bin/sh\n" + strings.Repeat("#", 15500), "W1w:0", Options{Cloud: "aws"}},
		{"#!/bin/sh\n" + strings.Repeat("#", 16384), "", Options{Cloud: "openstack"}},
		{"#!/bin/sh\nKEY=AKIAIOSFODNN7EXAMPLE\n", "W2f:2", Options{}},
		{"#!/bin/sh\nexport OS_PASSWORD='hunter2'\n", "W2f:2", Options{}},
		{"#!/bin/sh\ncat <<E\n-----BEGIN RSA PRIVATE KEY-----\nE\n", "W2f:3", Options{}},
		{"#!/bin/sh\ncurl -o x https://me:pass@example.net/x\n", "W2f:2 W7w:2", Options{}},
		{"#!/bin/sh\nif true; then\n", "W5f:2", Options{}},
		{"#!/bin/sh\na=(1 2)\n", "W5f:2", Options{}},
		{"#!/usr/bin/env bash\na=(1 2)\n", "", Options{}},
		{"#!/usr/bin/python3\nif True:\n  pass\n", "", Options{}},
		{"#!/bin/sh\n" + guard + "kubeadm join --token abcdef.0123456789abcdef x:6443\n", "W10f:3 W8f:3", Options{}},
		{"#!/bin/sh\nset -x\n", "W8f:2", Options{}},
		{"#!/bin/sh\ncurl -k https://x/y -o y\n", "W7f:2", Options{}},
		{"#!/bin/sh\ncat <<E\napiVersion: kubeadm.k8s.io/v1beta3\nE\n", "W4f:3", Options{Version: "v1.36.3"}},
		{"#!/bin/sh\ncat <<E\napiVersion: kubeadm.k8s.io/v1beta4\nE\n", "W4f:3", Options{Version: "v1.30.14"}},
		{"#!/bin/sh\ncat <<E\nunsafeSkipCAVerification: true\nE\n", "W10f:0", Options{}},
		{"#!/bin/sh\ncd /usr/local/bin\n", "W11f:2", Options{System: "flatcar"}},
		{"hello", "W6f:1", Options{}},
		{"#cloud-config\nruncmdd: []\n", "W6w:2", Options{}},
		{"#cloud-config\na: [\n", "W6f:2", Options{}},
		{"#cloud-config\nwrite_files: [{path: x}]\n", "W6w:2", Options{}},
		{"#cloud-config\nwrite_files: [{path: /x, content: abcdef.0123456789abcdef}]\n", "W8f:0", Options{}},
		{"#cloud-config\nwrite_files: [{path: /x, permissions: '0600', content: abcdef.0123456789abcdef}]\n", "", Options{}},
		{"#cloud-config\nbootcmd: ['kubeadm join --config /x']\n", "W3w:0", Options{}},
		{`{"ignition":{"version":"3.4.0"}}`, "W6f:0", Options{System: "flatcar"}},
		{`{"ignition":{"version":"3.3.0"}}`, "W6f:0", Options{System: "debian"}},
		{`{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/usr/x","contents":{"source":"data:,x"}}]}}`, "W11f:0", Options{System: "flatcar"}},
		{`{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/x","contents":{"source":"https://x/y"}}]}}`, "W7w:0", Options{}},
		{`{"ignition":{"version":"3.3.0"},"systemd":{"units":[{"name":"a.service","contents":"[Service]\nExecStart=-/bin/kubeadm join a:1 --token abcdef.0123456789abcdef\n"}]}}`, "W3w:0 W8f:0 W8f:0", Options{}},
		{`{"ignition":{"version":"3.3.0"},"systemd":{"units":[{"name":"kubelet.service","dropins":[{"name":"1.conf","contents":"[Service]\nEnvironment=KUBELET_EXTRA_ARGS=--network-plugin=cni\n"}]}]}}`, "W9f:0", Options{}},
		{`{"ignition":{"version":"3.3.0"},"systemd":{"units":[{"name":"a.service","contents":"[Unit]\nConditionPathExists=!/etc/kubernetes/kubelet.conf\n[Service]\nExecStart=/bin/kubeadm join --config /run/j\n"}]}}`, "", Options{}},
		{"#cloud-config\nwrite_files:\n- path: /etc/systemd/system/a.service\n  permissions: '0600'\n  content: |\n    [Service]\n    ExecStart=/bin/kubeadm join a:1 \\\n      --token abcdef.0123456789abcdef\n", "W3w:0 W8f:7", Options{}},
		{`{"a":1}`, "W6f:0", Options{}},
		{"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/x-shellscript\n\n#!/bin/sh\nset -x\n--x--\n", "W8f:8", Options{}},
		{"Content-Type: text/plain\n\nx\n", "W6f:1", Options{}},
		{zipped("#!/bin/sh\nset -x\n"), "W8f:2", Options{}},
		{zipped("#!/bin/sh\n:\n"), "W6f:0", Options{System: "flatcar"}},
		{"#cloud-boothook\n#!/bin/sh\n:\n", "W6f:0", Options{System: "flatcar"}},
		{"#include\nftp://me:pass@example.net/x\n", "W6f:2", Options{}},
		{"\x1f\x8bnot", "W6f:0", Options{}},
	} {
		found := Check([]byte(c.text), c.o)
		if got := rules(found); got != c.want {
			t.Errorf("%.60q: %s, want %s: %+v", c.text, got, c.want, found)
		}
		for _, f := range found {
			for _, secret := range []string{"IOSFODNN7", "hunter2", "0123456789abcdef", "me:pass"} {
				if strings.Contains(f.Text, secret) {
					t.Errorf("a finding repeats a secret: %s", f.Text)
				}
			}
		}
	}
}

// TestKubeletTables: the table is whole, and its minors are those that user data is made for.
func TestKubeletTables(t *testing.T) {
	table := kubeletTables()
	if len(table.flags) < 140 || len(table.joins) < 30 || len(table.fields["v1beta3"]) < 25 || len(table.fields["v1beta4"]) < 35 {
		t.Errorf("%d and %d flags, %d and %d fields", len(table.flags), len(table.joins), len(table.fields["v1beta3"]), len(table.fields["v1beta4"]))
	}
	newest := 0
	for name, m := range table.flags {
		newest = max(newest, m.last)
		if !slices.Contains([]string{"bool", "int", "uint", "float", "duration", "map", "bools", "text"}, m.kind) || m.first < userdata.OldestMinor || m.last < m.first || m.last > userdata.NewestMinor {
			t.Errorf("--%s: %+v", name, m)
		}
	}
	if newest != userdata.NewestMinor {
		t.Errorf("the table ends with 1.%d: make kubelet-tables", newest)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("#cloud-config\nwrite_files: [{path: /x, encoding: gz+b64, content: aa}]\n"), "flatcar")
	f.Add([]byte(`{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/x","contents":{"source":"data:;base64,aa","compression":"gzip"}}]}}`), "")
	f.Add([]byte("Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: a\n\n#!/bin/sh\n--x--\n"), "debian")
	for _, c := range cases(f) {
		f.Add([]byte(c.text), "")
	}
	f.Fuzz(func(t *testing.T, data []byte, system string) {
		for _, found := range Check(data, Options{Cloud: "aws", System: system}) {
			if found.Rule == "" || found.Text == "" || found.Line < 0 {
				t.Errorf("%+v", found)
			}
		}
	})
}
