package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestIdleIsLean: with 300 pods on 20 nodes and nothing to do, the agent stays under
// 60 MB of RSS. CPU is measured over 30 seconds and printed; it is judged with room,
// because a test machine is never quite idle.
func TestIdleIsLean(t *testing.T) {
	s := newScene(t, nil)
	// The intervals that users get, not the demo's.
	s.start("AUTOSCALER_OBSERVE_SLOW=30s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=10m", "AUTOSCALER_SCALING_UNNEEDED_FOR=10m")
	s.workers(world.Workers{Name: "workers", Max: 40})
	s.deploy("idle", 300, "250m", "64Mi") // 15 pods on each m5.xlarge
	s.until("300 Running", func() bool { return s.running("idle") == 300 })
	if n := len(s.nodes()); n != 20 {
		t.Fatalf("%d nodes, want 20", n)
	}
	<-time.After(10 * time.Second) // let the last events of the scale-up pass
	before := s.cpuTicks()
	const window = 30 * time.Second
	<-time.After(window)
	cpu := float64(s.cpuTicks()-before) / 100 / window.Seconds() * 100
	rss := s.rssMB()
	t.Logf("idle with 300 pods and 20 nodes: RSS %d MB, CPU %.2f %% of a core", rss, cpu)
	if rss >= 60 {
		t.Errorf("RSS is %d MB", rss)
	}
	if cpu >= 2 {
		t.Errorf("CPU is %.2f %% of a core", cpu)
	}
}

func (s *scene) cpuTicks() int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(s.agent.PID()) + "/stat")
	if err != nil {
		s.t.Skip("no /proc here: memory and CPU cannot be read")
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return user + system
}

func (s *scene) rssMB() int {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(s.agent.PID()) + "/status")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kb / 1024
		}
	}
	return 0
}
