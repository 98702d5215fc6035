package csrsigner

import (
	"slices"
	"testing"
)

func TestReadSelf(t *testing.T) {
	self := readSelf("leader", []string{"203.0.113.9", "Leader.Example.Org."})
	if self.Node != "leader" || self.Problem != "" || !slices.Contains(self.Names, "leader") || !slices.Contains(self.Names, "leader.example.org") ||
		!slices.Contains(self.Addresses, addr("203.0.113.9")) || !slices.Contains(self.Addresses, addr("127.0.0.1")) {
		t.Errorf("%+v", self)
	}
}
