package oneshot

import (
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
)

// TestConsolesOfOtherClouds: an ID that is of neither cloud is not asked for; what is known otherwise is told.
func TestConsolesOfOtherClouds(t *testing.T) {
	for _, id := range []string{"", "i-1", "kind://docker/a/b", "gce://p/z/i-0123456789abcdef0", "../i-0123456789abcdef0x", "azure:///x/01234567-89ab-cdef-0123-456789abcdef"} {
		x := ExplainInstance(t.Context(), config.Config{}, nojoin.Known{}, id)
		if x.Found || !strings.Contains(x.Summary, "no node group has an instance of that ID") || !strings.Contains(strings.Join(x.Known, "\n"), "is no instance of EC2") {
			t.Errorf("%q: %+v", id, x)
		}
	}
}
