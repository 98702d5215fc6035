package worlds

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

// peerMode makes the test binary a peer; see answer.
const peerMode = "WORLDS_TEST_PEER"

// answer buys a machine of the first group that costs most for each pod, or fails.
func answer() int {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var q Question
		if err := json.Unmarshal(line, &q); err != nil {
			return 1
		}
		a := Answer{Machines: make([]int, len(q.Groups)), Millis: 1.5}
		best := 0
		for g := range q.Groups {
			if q.Groups[g].Price > q.Groups[best].Price {
				best = g
			}
		}
		a.Machines[best] = len(q.Waiting)
		if os.Getenv(peerMode) == "fail" {
			a = Answer{Error: "no credentials"}
		}
		if out.Encode(a) != nil {
			return 1
		}
	}
}

// TestPeer plays a world with another program, and with one that fails.
func TestPeer(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, mode := range []string{"buy", "fail"} {
		t.Setenv(peerMode, mode)
		p, err := StartPeer(t.Context(), os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		r, err := Play(j, Draw(2), p.Buy)
		if (err != nil) != (mode == "fail") {
			t.Errorf("%s: error %v", mode, err)
		}
		if mode == "buy" && (r.Left > 0 || r.Machines != r.First || r.Slowest.Milliseconds() != 1) {
			t.Errorf("%d machines for %d pods, %d left, slowest decision %s", r.Machines, r.First, r.Left, r.Slowest)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
