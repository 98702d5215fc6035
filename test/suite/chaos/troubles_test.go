package chaos

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// trouble is something that goes wrong for a time. Play does it and waits with pause; it
// leaves everything repaired.
type trouble struct {
	name string
	most time.Duration // how long it lasts at most
	play func(s *storms, pick int, pause func())
}

// draw is a trouble at a moment of a storm.
type draw struct {
	trouble  trouble
	at, for_ time.Duration
	pick     int // which agent, machine or zone it meets
}

func (d draw) String() string {
	return fmt.Sprintf("%s at %s for %s", d.trouble.name, d.at.Round(time.Millisecond), d.for_.Round(time.Millisecond))
}

var troubles = []trouble{
	{"an agent is killed", 4 * time.Second, onAgent(func(_ *storms, a *agent, pause func()) { a.kill(); pause(); a.again() })},
	{"an agent is killed and its state lost", 4 * time.Second, onAgent(func(s *storms, a *agent, pause func()) {
		a.kill()
		if err := os.RemoveAll(a.state()); err != nil {
			s.t.Error(err)
		}
		pause()
		a.again()
	})},
	{"both agents are killed", 4 * time.Second, func(s *storms, _ int, pause func()) {
		var all []*agent
		for _, a := range s.agents {
			if a.trouble.TryLock() {
				defer a.trouble.Unlock()
				a.kill()
				all = append(all, a)
			}
		}
		pause()
		for _, a := range all {
			a.again()
		}
	}},
	{"an agent is stopped", 5 * time.Second, onAgent(func(_ *storms, a *agent, pause func()) { a.stop(); pause(); a.again() })},
	// Longer than the Lease, so that it goes on after the other one has led.
	{"an agent is frozen", 15 * time.Second, onAgent(func(_ *storms, a *agent, pause func()) { a.freeze(); pause(); a.thaw() })},
	{"the API server is killed", 5 * time.Second, onPart(controlplane.APIServer, true)},
	{"the API server is frozen", 8 * time.Second, onPart(controlplane.APIServer, false)},
	{"etcd is frozen", 5 * time.Second, onPart(controlplane.Etcd, false)},
	{"the scheduler is killed", 6 * time.Second, onPart(controlplane.Scheduler, true)},
	fault("everything is throttled", aws.Fault{Kind: aws.Throttle}),
	fault("every third call is throttled", aws.Fault{Kind: aws.Throttle, Probability: 0.3}),
	fault("the cloud fails", aws.Fault{Kind: aws.ServerError500}),
	fault("the cloud is unavailable", aws.Fault{Kind: aws.Unavailable503, Probability: 0.7}),
	fault("connections are reset", aws.Fault{Kind: aws.ConnectionReset, Probability: 0.5}),
	fault("answers are lost", aws.Fault{Kind: aws.AnswerLost, Probability: 0.3}),
	fault("answers about capacity are lost", aws.Fault{Action: "SetDesiredCapacity", Kind: aws.AnswerLost}),
	fault("answers about ends are lost", aws.Fault{Action: "TerminateInstance*", Kind: aws.AnswerLost}),
	fault("answers are cut off", aws.Fault{Kind: aws.TruncatedBody, Probability: 0.5}),
	fault("answers are slow", aws.Fault{Kind: aws.Slow, Delay: 3 * time.Second, Probability: 0.5}),
	fault("lists are empty", aws.Fault{Action: "Describe*", Kind: aws.EmptyList}),
	fault("lists are half", aws.Fault{Action: "Describe*", Kind: aws.ShortList}),
	fault("lists lack pages", aws.Fault{Action: "Describe*", Kind: aws.PartialPage}),
	fault("credentials have expired", aws.Fault{Kind: aws.ExpiredCredentials}),
	fault("changes are forbidden", aws.Fault{Action: "SetDesiredCapacity", Kind: aws.Forbidden}),
	{"reads lag", 8 * time.Second, func(s *storms, pick int, pause func()) {
		if s.hurt.lag.TryLock() {
			defer s.hurt.lag.Unlock()
			s.w.Cloud.StaleReads(time.Duration(500+pick%2500) * time.Millisecond)
			pause()
			s.w.Cloud.StaleReads(0)
		}
	}},
	{"a zone has no machines", 8 * time.Second, func(s *storms, pick int, pause func()) {
		zones := s.w.Cloud.Zones()
		zone := zones[pick%len(zones)]
		s.w.Cloud.NoCapacity(zone, "*")
		pause()
		s.w.Cloud.HasCapacity(zone, "*")
	}},
	{"a machine dies", 0, func(s *storms, pick int, _ func()) { s.onMachine(pick, s.w.Cloud.TerminateInstance) }},
	{"a machine reboots", 0, func(s *storms, pick int, _ func()) { s.onMachine(pick, s.w.Cloud.Reboot) }},
}

// again starts an agent that was ended on purpose.
func (a *agent) again() {
	if err := a.start(); err != nil {
		a.t.Errorf("start agent %s: %v", a.name, err)
	}
}

// onAgent is a trouble of one agent that is in no other.
func onAgent(play func(s *storms, a *agent, pause func())) func(*storms, int, func()) {
	return func(s *storms, pick int, pause func()) {
		if a := s.agents[pick%len(s.agents)]; a.trouble.TryLock() {
			defer a.trouble.Unlock()
			play(s, a, pause)
		}
	}
}

// onPart kills or freezes a part of the control plane; one trouble of it at a time.
func onPart(part string, kill bool) func(*storms, int, func()) {
	return func(s *storms, _ int, pause func()) {
		if !s.hurt.plane.TryLock() {
			return
		}
		defer s.hurt.plane.Unlock()
		cp := s.w.ControlPlane
		begin, end := func() error { return cp.PausePart(part) }, func() error { return cp.ResumePart(part) }
		if kill {
			begin, end = func() error { return cp.KillPart(part) }, func() error { return cp.StartPart(context.Background(), part) }
		}
		if err := begin(); err != nil {
			s.t.Errorf("%s: %v", part, err)
			return
		}
		pause()
		if err := end(); err != nil {
			s.t.Errorf("%s: %v", part, err)
		}
	}
}

func fault(name string, f aws.Fault) trouble {
	return trouble{name, 8 * time.Second, func(s *storms, _ int, pause func()) {
		stop := s.w.Cloud.Inject(f)
		pause()
		stop()
	}}
}

// casualties are what a storm has broken that costs a machine more, and what may be broken by
// one trouble at a time.
type casualties struct {
	plane, lag sync.Mutex

	mu       sync.Mutex
	machines []string
}

func (c *casualties) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machines
}

// onMachine does something to one of the machines that run.
func (s *storms) onMachine(pick int, do func(id string) error) {
	var running []string
	for _, i := range s.w.Cloud.Instances() {
		if i.State == "running" {
			running = append(running, i.ID)
		}
	}
	if len(running) == 0 {
		return
	}
	id := running[pick%len(running)]
	s.hurt.mu.Lock()
	s.hurt.machines = append(s.hurt.machines, id)
	s.hurt.mu.Unlock()
	if err := do(id); err != nil { // it ends of itself at this moment
		s.t.Logf("%s: %v", id, err)
	}
}
