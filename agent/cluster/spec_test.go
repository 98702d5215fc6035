package cluster

import (
	"slices"
	"testing"
)

func TestDifferences(t *testing.T) {
	tests := []struct {
		name       string
		is, wanted Spec
		want       []Difference
	}{
		{"equal", Spec{"image": "a"}, Spec{"image": "a"}, nil},
		{"not told of the instance", nil, Spec{"image": "a"}, nil},
		{"not told of the group", Spec{"image": "a"}, nil, nil},
		{"told with an empty value", Spec{"key pair": ""}, Spec{"key pair": "ops"}, []Difference{{"key pair", "", "ops"}}},
		{"one of several", Spec{"instance type": "m5.large"}, Spec{"instance type": "m5.large|m6i.large"}, nil},
		{"none of several", Spec{"instance type": "m4.large"}, Spec{"instance type": "m5.large|m6i.large"}, []Difference{{"instance type", "m4.large", "m5.large|m6i.large"}}},
		{"sorted by name", Spec{"b": "1", "a": "1"}, Spec{"a": "2", "b": "2"}, []Difference{{"a", "1", "2"}, {"b", "1", "2"}}},
	}
	for _, test := range tests {
		if got := test.is.Differences(test.wanted); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
