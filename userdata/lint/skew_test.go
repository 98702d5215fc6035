package lint

import (
	"strings"
	"testing"
)

// TestSkew: the kubelet that user data installs, by whatever names its version, is held against
// the API server. Without either version nothing is said.
func TestSkew(t *testing.T) {
	for _, c := range []struct {
		text, version, server, want string
	}{
		{"#!/bin/sh\nKUBERNETES_VERSION=v1.36.3\n", "", "v1.35.1", "W13f:2"},
		{"#!/bin/sh\ncurl -fo kubelet https://dl.k8s.io/release/v1.31.14/bin/linux/amd64/kubelet; sha256sum -c sums\n", "", "1.36", "W13f:2"},
		{"#!/bin/sh\napt-get install -y kubelet=1.32.9-1.1 kubeadm=1.32.9-1.1\n", "", "v1.31.2", "W13f:2"},
		{"#!/bin/sh\nyum install -y kubelet-1.32.9\n", "", "v1.31.2", "W13f:2"},
		{"#!/bin/sh\necho 'deb https://pkgs.k8s.io/core:/stable:/v1.34/deb/ /' >/etc/apt/sources.list.d/k.list\n", "", "v1.33.4+rke2r1", "W13f:2"},
		{"#cloud-config\nruncmd:\n- apt-get install -y kubelet=1.32.9-1.1\n", "", "v1.31.2", "W13f:3"},
		{"#!/bin/sh\nls\nK8S_VERSION=1.30.14\n", "", "v1.34.0", "W13f:3"},
		{"#!/bin/sh\nK8S_VERSION=1.33.0\n", "v1.36.0", "v1.35.0", "W13f:0"},
		{"#!/bin/sh\nK8S_VERSION=1.36.0\n", "v1.33.0", "v1.35.0", ""},
		{"#!/bin/sh\nK8S_VERSION=1.33.0\n", "", "v1.36.9", ""},
		{"#!/bin/sh\nK8S_VERSION=1.36.0\n", "", "v1.37.0", ""},
		{"#!/bin/sh\nK8S_VERSION=1.36.0\n", "", "", ""},
		{"#!/bin/sh\nls\n", "", "v1.30.0", ""},
	} {
		found := Check([]byte(c.text), Options{Version: c.version, APIServerVersion: c.server})
		var skew []Finding
		for _, f := range found {
			if f.Rule == Skewed {
				skew = append(skew, f)
			}
		}
		if rules(skew) != c.want {
			t.Errorf("%q, %s for %s: %+v, want %q", c.text, c.version, c.server, found, c.want)
		}
		if len(skew) > 0 && !strings.Contains(skew[0].Text, "; install ") {
			t.Errorf("no remedy: %s", skew[0].Text)
		}
	}
}
