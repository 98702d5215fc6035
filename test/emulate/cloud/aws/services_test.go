package aws

import (
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws/awsmodel"
)

// TestTheTablesNameWhatAWSHas keeps typing errors out of the action tables: a
// parameter that does not exist would be one that is silently refused.
func TestTheTablesNameWhatAWSHas(t *testing.T) {
	dir, err := awsmodel.Locate("")
	if err != nil {
		t.Fatal(err)
	}
	m, err := awsmodel.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range services {
		for act, a := range s.actions {
			known, content := m.Knows(name, act)
			if !known {
				t.Errorf("%s has no action %s", name, act)
			}
			if s.wrapped && a.bare == content {
				t.Errorf("%s:%s: bare is %v, but the model's content is %v", name, act, a.bare, content)
			}
			for _, p := range a.params {
				if act == "DescribeAutoScalingGroups" && p == "IncludeInstances" {
					continue // the SDK has it, the model is older
				}
				if err := m.CheckParam(name, act, p); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if m.CheckParam("ec2", "DescribeInstances", "Filter.N.Values.N") == nil ||
		m.CheckParam("autoscaling", "DescribeTags", "Filters.N.Name") == nil {
		t.Error("the check of parameters does not bite")
	}
}

func TestPatternsAndWildcards(t *testing.T) {
	if got := pattern("Filter.12.Value.1"); got != "Filter.N.Value.N" {
		t.Error(got)
	}
	for _, test := range []struct {
		glob, s string
		want    bool
	}{{"*", "k8s.io/a", true}, {"k8s.io/*", "k8s.io/a/b", true}, {"?-1", "i-1", true}, {"i", "ii", false}, {"", "", true}, {"*b", "ab", true}, {"*b", "ba", false}} {
		if got := wildcard(test.glob, test.s); got != test.want {
			t.Errorf("%q on %q: %v", test.glob, test.s, got)
		}
	}
	if strings.Contains(pattern("1.2"), "1") == false {
		t.Error("the first part is a name, whatever it looks like")
	}
}
