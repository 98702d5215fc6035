package scaleup

import (
	"fmt"
	"testing"
)

// BenchmarkManyClasses decides rounds that once took between two seconds and minutes: hundreds
// or thousands of classes, with terms of anti-affinity on hosts, or on hundreds of groups.
func BenchmarkManyClasses(b *testing.B) {
	for _, c := range []struct{ pods, classes, groups, hosts int }{
		{600, 300, 12, 0},
		{750, 250, 12, 2},
		{1_500, 500, 12, 2},
		{3_000, 1_000, 12, 2},
		{6_000, 2_000, 12, 2},
		{2_400, 800, 30, 1},
		{2_000, 200, 200, 0},
		{100_000, 100_000, 12, 0},
	} {
		b.Run(fmt.Sprintf("pods=%d/classes=%d/groups=%d/hosts=%d", c.pods, c.classes, c.groups, c.hosts), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				w := burst(1, c.pods, c.classes, c.groups, c.hosts)
				b.StartTimer()
				w.Decide()
			}
		})
	}
}
