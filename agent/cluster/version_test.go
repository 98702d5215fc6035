package cluster

import (
	"strings"
	"testing"
)

func TestMinorOf(t *testing.T) {
	for version, want := range map[string]int{
		"v1.36.3": 36, "1.36": 36, "v1.30": 30, "v1.36.0-rc.1": 36, "v1.33.4+rke2r1": 33, "v1.32+": 32, "v1.34.2-eks-1234": 34,
		"": -1, "v1": -1, "v1.": -1, "v2.36.1": -1, "v1.x.3": -1, "v1.36x": -1, "v1.99999999.1": -1, "36": -1, "v11.3": -1,
	} {
		n, ok := MinorOf(version)
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %t, want %d", version, n, ok, want)
		}
	}
}

func TestMinorsBehind(t *testing.T) {
	for text, want := range map[string]int{"v1.34.9 v1.36.3": 2, "v1.36.3 v1.34.9": -2, "v1.36.0-eks-1 v1.36.3": 0, "1.35 v1.36": 1, "v1.35+ v1.36.1": 1, "v2.1.0 v1.36.0": 0, "x v1.2": 0, "v1 v1.2": 0} {
		version, than, _ := strings.Cut(text, " ")
		if got := MinorsBehind(version, than); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
