package text

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
)

// TestHistory: a line of blocks has the most of each part, blanks where nothing is known,
// and the newest decision is the first.
func TestHistory(t *testing.T) {
	if got := spark([]int{-1, -1, 0, 4, 1, 8, 8, 2}, 4); got != " ▄██" {
		t.Errorf("%q", got)
	}
	if got := spark([]int{0, 0}, 9); got != "▁▁" {
		t.Errorf("%q", got)
	}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	v := history.View{Start: at, Pending: []int{0, 5}, Ready: []int{2, 2}, Groups: []history.Group{{Name: "quiet", Machines: []int{3, 3}}, {Name: "busy", Machines: []int{0, 9}}},
		Marks: []history.Mark{{At: at, Do: "grow", Group: "busy", From: 0, To: 9, Rule: "U3", Why: "for 5 pods"}, {At: at.Add(time.Hour), Do: "terminate", Node: "a", Count: 3, Rule: "D17", Why: "empty", Error: "denied"}}}
	var b strings.Builder
	History(&b, v, 0)
	for _, want := range []string{"from 12:00", "pending pods", "▁█", "0 to 5", "group busy", "13:00  terminate a and 2 more, failed: denied [D17] empty\n  12:00  grow busy 0→9 [U3] for 5 pods"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "price") || strings.Index(b.String(), "busy") > strings.Index(b.String(), "quiet") {
		t.Error(b.String())
	}
}
