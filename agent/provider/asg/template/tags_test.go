package template

import "testing"

func TestTagsOfOtherMakersAreNoLabels(t *testing.T) {
	h := parseHints(map[string]string{
		"eks:cluster-name": "x", "aws:cloudformation:stack-name": "y", "Name": "z",
		tagLabel + "pool":               "blue",
		tagLabel:                        "no name",
		tagTaint + "a":                  ":NoSchedule",
		tagTaint + "b":                  "v:w:NoExecute",
		tagTaint + "c":                  "v:Never",
		tagResources + "cpu":            "1500m",
		tagResources + "example.com/x":  "7",
		tagResources + "nvidia.com/gpu": "many",
	})
	if len(h.labels) != 1 || h.labels["pool"] != "blue" {
		t.Errorf("labels %v", h.labels)
	}
	if len(h.taints) != 2 || h.taints[0].Value != "" || h.taints[1].Value != "v:w" || h.taints[1].Effect != "NoExecute" {
		t.Errorf("taints %v", h.taints)
	}
	if h.resources["cpu"] != 1500 || h.resources["example.com/x"] != 7 || len(h.resources) != 2 {
		t.Errorf("resources %v", h.resources)
	}
	if len(h.warnings) != 2 || len(h.relevant) != 5 {
		t.Errorf("warnings %q, relevant %q", h.warnings, h.relevant)
	}
}
