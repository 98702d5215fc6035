package template

import (
	"strings"
	"testing"
)

func TestTagsOfOtherMakersAreNoLabels(t *testing.T) {
	h := parseHints(map[string]string{
		"eks:cluster-name": "x", "aws:cloudformation:stack-name": "y", "Name": "z",
		tagLabel + "pool":               "blue",
		tagLabel:                        "no name",
		tagTaint + "a":                  ":NoSchedule",
		tagTaint + "b":                  "v-w:NoExecute",
		tagTaint + "c":                  "v:Never",
		tagResources + "cpu":            "1500m",
		tagResources + "example.com/x":  "7",
		tagResources + "nvidia.com/gpu": "many",
	})
	if len(h.labels) != 1 || h.labels["pool"] != "blue" {
		t.Errorf("labels %v", h.labels)
	}
	if len(h.taints) != 2 || h.taints[0].Value != "" || h.taints[1].Value != "v-w" || h.taints[1].Effect != "NoExecute" {
		t.Errorf("taints %v", h.taints)
	}
	if h.resources["cpu"] != 1500 || h.resources["example.com/x"] != 7 || len(h.resources) != 2 {
		t.Errorf("resources %v", h.resources)
	}
	if len(h.warnings) != 2 || len(h.relevant) != 5 {
		t.Errorf("warnings %q, relevant %q", h.warnings, h.relevant)
	}
}

// TestTagsThatNoNodeCanHave: such a tag is left out and named with its value and a remedy, and
// the others hold (issue 39).
func TestTagsThatNoNodeCanHave(t *testing.T) {
	for _, c := range []struct{ key, value, says string }{
		{tagLabel + "pool", "team/a", `"team/a" cannot be the value of a label: write`},
		{tagLabel + "a/b/c", "x", `"a/b/c" cannot be the key of a label: write`},
		{tagLabel + "pool", strings.Repeat("x", 64), "63"},
		{tagTaint + "team", "a/b:NoSchedule", `"a/b" cannot be the value of a taint`},
		{tagTaint + "a b", "x:NoSchedule", `"a b" cannot be the key of a taint`},
		{tagResources + "gpu", "1", `"gpu" is no name of a resource`},
		{tagResources + "nvidia.com/gpu", "1.5", "whole number"},
	} {
		h := parseHints(map[string]string{c.key: c.value, tagLabel + "ok": "yes", tagTaint + "ok": "yes:NoSchedule", tagResources + "cpu": "2"})
		if len(h.warnings) != 1 || !strings.HasPrefix(h.warnings[0], "tag "+c.key+`="`+c.value+`" is left out: `) || !strings.Contains(h.warnings[0], c.says) {
			t.Errorf("%s=%s: %q", c.key, c.value, h.warnings)
		}
		if len(h.labels) != 1 || len(h.taints) != 1 || len(h.resources) != 1 || len(h.relevant) != 3 {
			t.Errorf("%s=%s: %+v", c.key, c.value, h)
		}
	}
}
