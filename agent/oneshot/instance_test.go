package oneshot

import (
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
)

// TestConsolesOfOtherClouds: an ID that is of neither cloud is refused without a question.
func TestConsolesOfOtherClouds(t *testing.T) {
	for _, id := range []string{"", "i-1", "kind://docker/a/b", "gce://p/z/i-0123456789abcdef0", "../i-0123456789abcdef0x", "azure:///x/01234567-89ab-cdef-0123-456789abcdef"} {
		if _, err := ExplainInstance(t.Context(), config.Config{}, id); err == nil || !strings.Contains(err.Error(), "is no instance of EC2") {
			t.Errorf("%q: %v", id, err)
		}
	}
}
