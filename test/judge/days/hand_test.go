package days

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

// byHand is a day that can be worked out by hand. A machine holds two pods. Ten of them need five
// machines; from the second hour on three need two. At four and at eight o'clock of the day's
// clock one of the node with two goes, so that each of two nodes has one and the emptier is
// drained; at six, one more pod needs a machine again.
func byHand(t *testing.T) *Day {
	drawn, err := Draw("office", 1)
	if err != nil {
		t.Fatal(err)
	}
	g := drawn.Groups[0]
	g.ID, g.Price = "g", 0.1
	a, c := &g.Template.Allocatable, &g.Template.Capacity
	a.MilliCPU, c.MilliCPU, a.Memory, c.Memory, a.Pods, c.Pods = 1930, 2000, 7<<30, 8<<30, 29, 29
	return &Day{Kind: "by hand", Seed: 7, Groups: append(drawn.Groups[:0:0], g), Work: []Workload{{Name: "web", Milli: 900, MiB: 512, Budget: true}},
		Demand: []Demand{{Replicas: 10}, {At: 2 * time.Hour, Replicas: 3}, {At: 4 * time.Hour, Replicas: 2}, {At: 6 * time.Hour, Replicas: 3}, {At: 8 * time.Hour, Replicas: 2}}}
}

// TestByHand: each scaler comes to what the day comes to by hand: machines go ten minutes after
// their pods, two of them with one eviction each, and one is bought.
func TestByHand(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, s := range []Scaler{ClusterAutoscaler("rules"), Ours("ours", policy(t), false)} {
		var acts []string
		s.Log = func(line string) { acts = append(acts, line) }
		r, err := Play(j, byHand(t), s)
		if err != nil {
			t.Fatal(err)
		}
		const late = 10. / 60
		least := 0.1 * (5*(1+late) + 2*2 + (25 - 4 - late) + (2 + late)) // by the machines' hours
		if r.Started != 1 || r.Removed != 5 || r.Evictions != 2 || r.Waiting != 0 || math.Abs(r.End-0.1) > 1e-9 || r.Bill < least-0.01 || r.Bill > least+0.1*5*0.15 {
			t.Errorf("%s: %s; the bill is %.3f to %.3f by hand\n%s", s.Name, &r, least, least+0.075, strings.Join(acts, "\n"))
		}
		if most := r.Wait(1); most < time.Minute || most > 2*time.Minute+5*time.Second {
			t.Errorf("%s: the pod that needs a machine waits %s", s.Name, most)
		}
		if want := 0.1 * 2 * 900. / 1930; r.Bound < want-1e-9 || r.Bound > 0.1+1e-9 {
			t.Errorf("%s: bound %.4f, by hand %.4f at least and one machine at most", s.Name, r.Bound, want)
		}
	}
}

// TestRepeats: a day that is played again comes to the same.
func TestRepeats(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, s := range []Scaler{ClusterAutoscaler("rules"), Ours("ours", policy(t), false)} {
		var two [2]Report
		for i := range two {
			day, err := Draw("nightly", 5)
			if err != nil {
				t.Fatal(err)
			}
			if two[i], err = Play(j, day, s); err != nil {
				t.Fatal(err)
			}
			two[i].CPU = 0
		}
		if !reflect.DeepEqual(two[0], two[1]) {
			t.Errorf("%s: %s, and then %s", s.Name, &two[0], &two[1])
		}
	}
}

// TestScaleDownOff: an agent that removes nothing pays for it, so that the bill is one of what runs.
func TestScaleDownOff(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	r, err := Play(j, byHand(t), Ours("ours", policy(t, "AUTOSCALER_SCALING_SCALE_DOWN=false"), false))
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.Bill-5*24*0.1) > 1e-6 || r.Removed != 0 {
		t.Errorf("five machines all day: %s", &r)
	}
}

// TestDraw: a seed is a day, and another seed another.
func TestDraw(t *testing.T) {
	for _, kind := range Kinds {
		a, errA := Draw(kind, 3)
		b, errB := Draw(kind, 3)
		c, errC := Draw(kind, 4)
		if errA != nil || errB != nil || errC != nil {
			t.Fatal(errA, errB, errC)
		}
		if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a.Demand, c.Demand) || len(a.Groups) < 3 || len(a.Groups) > 8 || len(a.Demand) == 0 {
			t.Errorf("%s: %d groups, %d demands", kind, len(a.Groups), len(a.Demand))
		}
		for _, g := range a.Groups {
			if g.Price <= 0 || g.PriceSource == "" {
				t.Errorf("%s: group %s costs %g by %q", kind, g.ID, g.Price, g.PriceSource)
			}
		}
	}
	if _, err := Draw("sunday", 1); err == nil {
		t.Error("a kind that is none is drawn")
	}
}

// programMode makes the test binary a program that plays; see answer.
const programMode = "DAYS_TEST_PROGRAM"

// answer buys a machine of the first group for every pod that waits and removes nothing, or fails.
func answer() int {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m Moment
		if err := json.Unmarshal(line, &m); err != nil {
			return 1
		}
		waiting := 0
		for _, p := range m.Pods {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
					waiting++
				}
			}
		}
		ready := 0
		for _, n := range m.Nodes {
			if n.Status.Conditions[0].Status == corev1.ConditionTrue {
				ready++
			}
		}
		g := &m.Groups[0]
		a := Acts{Millis: 0.5, Next: m.Now.Add(time.Minute)}
		if to := ready + waiting; to > g.Target {
			a.Acts = append(a.Acts, Act{Do: "grow", Group: g.ID, To: to})
		}
		if os.Getenv(programMode) == "fail" {
			a = Acts{Error: "no credentials"}
		}
		if out.Encode(a) != nil {
			return 1
		}
	}
}

// TestProgram plays a day with another program, and with one that fails.
func TestProgram(t *testing.T) {
	j, err := oracle.StartJudge(t.Context(), judgeProgram)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, mode := range []string{"buy", "fail"} {
		t.Setenv(programMode, mode)
		r, err := Play(j, byHand(t), Program(t.Context(), os.Args[0]))
		if (err != nil) != (mode == "fail") {
			t.Errorf("%s: error %v", mode, err)
		}
		if mode == "buy" && (math.Abs(r.Bill-10*24*0.1) > 1e-6 || r.Decisions != 24*60 || r.CPU != 24*60*time.Millisecond/2) {
			t.Errorf("ten machines all day, asked every minute: %s", &r)
		}
	}
}
