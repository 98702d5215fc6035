package world

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/wire"
)

// Fault is something that goes wrong at a time, for a time.
type Fault struct {
	At, For time.Duration // since the beginning of the world
	Kind    string        // a row of faultKinds
	Agent   int           // whose; -1: of all
	N       int           // what the kind makes of it
}

// String is a line of a story.
func (f Fault) String() string {
	text := fmt.Sprintf("%s %s (%d)", f.At.Round(time.Second), faultKinds[f.Kind].text, f.N)
	if f.Agent >= 0 {
		text += fmt.Sprint(" at leader-", f.Agent)
	}
	if f.For > 0 {
		text += " for " + f.For.Round(time.Second).String()
	}
	return text
}

// faultKind is a row of the table of faults.
type faultKind struct {
	text   string
	often  int           // of all draws
	most   time.Duration // of For; 0: it happens at once
	begin  func(w *World, f Fault)
	strike func(f Fault, r *http.Request, random *rand.Rand) wire.Fault // of requests while it lasts
}

// aftermath is how long after some kinds pods may still wait: a group whose machines did not come is left alone for so
// long. Users and thieves trouble nobody.
var aftermath = map[string]time.Duration{"never": 40 * time.Minute, "no-capacity": 40 * time.Minute, "slow-boots": 40 * time.Minute, "slow-ready": 10 * time.Minute, "reborn": 40 * time.Minute, "sick-unlisted": 15 * time.Minute, "sick-missing": 15 * time.Minute, "cloud-errs": 40 * time.Minute,
	"scale": -1, "thief": -1, "user-buys": -1}

func toAPI(r *http.Request) bool   { return r.URL.Host == apiHost }
func toCloud(r *http.Request) bool { return r.URL.Host != apiHost }
func writes(r *http.Request) bool {
	return toAPI(r) && r.Method != http.MethodGet
}

// some strikes one request in n+1.
func some(f Fault, random *rand.Rand, fault wire.Fault) wire.Fault {
	if random.IntN(f.N%4+1) != 0 {
		return wire.Fault{}
	}
	return fault
}

var faultKinds map[string]faultKind

func init() {
	faultKinds = map[string]faultKind{
		"api-fails": {"the API server answers 503 or 500 now and then", 3, 10 * time.Minute, nil, func(f Fault, r *http.Request, random *rand.Rand) wire.Fault {
			if !toAPI(r) {
				return wire.Fault{}
			}
			return some(f, random, wire.Fault{Status: []int{500, 503, 429, 504}[random.IntN(4)]})
		}},
		"api-cut": {"the API server cannot be reached", 3, 6 * time.Minute, func(w *World, f Fault) { w.resetWires(f) }, func(f Fault, r *http.Request, _ *rand.Rand) wire.Fault {
			return wire.Fault{Cut: toAPI(r) && f.N%4 == 0, Refuse: toAPI(r) && f.N%4 > 0} // client-go tries ten times, a second apart, where a connection breaks
		}},
		"api-hangs": {"the API server does not answer", 2, 4 * time.Minute, nil, func(f Fault, r *http.Request, random *rand.Rand) wire.Fault {
			if !toAPI(r) || f.N%2 == 0 && r.Method == http.MethodGet {
				return wire.Fault{}
			}
			return some(f, random, wire.Fault{Hang: true})
		}},
		"api-lost": {"answers of the API server to writes are lost", 3, 5 * time.Minute, nil, func(f Fault, r *http.Request, random *rand.Rand) wire.Fault {
			if !writes(r) {
				return wire.Fault{}
			}
			return some(f, random, wire.Fault{Lost: true})
		}},
		"api-late": {"answers of the API server are late", 2, 5 * time.Minute, nil, func(f Fault, r *http.Request, random *rand.Rand) wire.Fault {
			if !toAPI(r) {
				return wire.Fault{}
			}
			return some(f, random, wire.Fault{Late: time.Duration(random.IntN(15000)) * time.Millisecond})
		}},
		"api-slow": {"requests reach the API server late", 2, 5 * time.Minute, nil, func(f Fault, r *http.Request, random *rand.Rand) wire.Fault {
			if !toAPI(r) {
				return wire.Fault{}
			}
			return some(f, random, wire.Fault{Delay: time.Duration(random.IntN(12000)) * time.Millisecond})
		}},
		"api-twice":   {"writes reach the API server twice", 1, 5 * time.Minute, nil, func(_ Fault, r *http.Request, _ *rand.Rand) wire.Fault { return wire.Fault{Twice: writes(r)} }},
		"watch-break": {"every watch breaks", 3, 0, func(w *World, _ Fault) { w.API.BreakWatches() }, nil},
		"watch-old":   {"every watch is too old", 2, 0, func(w *World, _ Fault) { w.API.Expire() }, nil},
		"cloud-throttles": {"the cloud throttles", 2, 10 * time.Minute, func(w *World, f Fault) {
			w.Cloud.Inject(aws.Fault{Kind: aws.Throttle, Probability: 0.5, For: f.For})
		}, nil},
		"cloud-fails": {"the cloud answers 500 now and then", 2, 10 * time.Minute, func(w *World, f Fault) {
			w.Cloud.Inject(aws.Fault{Kind: aws.ServerError500, Probability: 0.5, For: f.For})
		}, nil},
		"cloud-cut": {"the cloud cannot be reached", 2, 6 * time.Minute, nil, func(_ Fault, r *http.Request, _ *rand.Rand) wire.Fault { return wire.Fault{Refuse: toCloud(r)} }},
		"cloud-lost": {"answers of the cloud to changes are lost", 4, 10 * time.Minute, func(w *World, f Fault) {
			w.Cloud.Inject(aws.Fault{Kind: aws.AnswerLost, Action: []string{"SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup"}[f.N%2], For: f.For})
		}, nil},
		"cloud-short": {"the cloud lists half of its instances", 2, 3 * time.Minute, func(w *World, f Fault) {
			w.Cloud.Inject(aws.Fault{Kind: []aws.Kind{aws.ShortList, aws.EmptyList}[f.N%2], Service: "ec2", Action: "DescribeInstances", Probability: 0.5, For: f.For})
		}, nil},
		"cloud-errs": {"the cloud resets connections (0), is slow (1), cuts answers off (2), leaves pages out (3), takes no credentials (4), forbids purchases (5) or is unavailable (6)", 5, 6 * time.Minute, func(w *World, f Fault) {
			kinds := []aws.Fault{{Kind: aws.ConnectionReset, Probability: 0.5}, {Kind: aws.Slow, Delay: 3 * time.Second, Probability: 0.5}, {Kind: aws.TruncatedBody, Probability: 0.5},
				{Kind: aws.PartialPage, Action: "Describe*"}, {Kind: aws.ExpiredCredentials}, {Kind: aws.Forbidden, Action: "SetDesiredCapacity"}, {Kind: aws.Unavailable503, Probability: 0.7}}
			x := kinds[f.N%len(kinds)]
			x.For = f.For
			w.Cloud.Inject(x)
		}, nil},
		"cloud-stale": {"reads of the cloud are old", 3, 10 * time.Minute, func(w *World, f Fault) {
			w.faults.staleUntil = time.Now().Add(f.For + time.Minute)
			w.Cloud.StaleReads(time.Duration(5+f.N%40) * time.Second)
			w.after(f.For, func() { w.Cloud.StaleReads(0) })
		}, nil},
		"cloud-swallows": {"changes do not reach the cloud: the connection breaks (0) or hangs (1)", 3, 5 * time.Minute, nil, func(f Fault, r *http.Request, _ *rand.Rand) wire.Fault {
			if !toCloud(r) || change(r) == "" {
				return wire.Fault{}
			}
			return wire.Fault{Cut: f.N%2 == 0, Hang: f.N%2 == 1}
		}},
		"cloud-flight": {"changes reach the cloud late, whether or not somebody still waits for them", 3, 8 * time.Minute, nil, func(_ Fault, r *http.Request, random *rand.Rand) wire.Fault {
			if !toCloud(r) || change(r) == "" {
				return wire.Fault{}
			}
			return wire.Fault{Flight: time.Duration(1+random.IntN(50)) * time.Second}
		}},
		"kill": {"killed; its files are as they were (0), older (1) or gone (2)", 4, 4 * time.Minute, func(w *World, f Fault) { w.killFor(w.agents[f.Agent], f) }, nil},
		"stop": {"stopped as systemctl stop does it, and started again", 3, 3 * time.Minute, func(w *World, f Fault) { w.agents[f.Agent].restart(max(f.For, time.Second)) }, nil},
		"kill-all": {"every agent is killed", 1, 2 * time.Minute, func(w *World, f Fault) {
			for _, a := range w.agents {
				w.killFor(a, f)
			}
		}, nil},
		"kill-at-write":   {"killed right after a write, whose answer it does not see", 6, 4 * time.Minute, func(w *World, f Fault) { w.faults.arm(f) }, nil},
		"kill-at-buy":     {"killed right after a change of the cloud, whose answer it does not see", 6, 2 * time.Minute, func(w *World, f Fault) { w.faults.arm(f) }, nil},
		"kill-before-buy": {"killed right before a change of the cloud, which never leaves", 4, 2 * time.Minute, func(w *World, f Fault) { w.faults.arm(f) }, nil},
		"never":           {"machines that boot never join", 2, 0, func(w *World, f Fault) { w.faults.never += 1 + f.N%3 }, nil},
		"slow-boots":      {"machines boot slowly", 2, 20 * time.Minute, func(w *World, f Fault) { w.faults.slowUntil = time.Now().Add(f.For) }, nil},
		"no-capacity": {"the cloud has no machines, while users scale", 2, 15 * time.Minute, func(w *World, f Fault) {
			for i := range int(f.For / time.Minute) { // a purchase that fails is no reason for another one
				w.after(time.Duration(i)*time.Minute+5*time.Second, func() { w.more(workloads[(f.N/8+i)%len(workloads)]) })
			}
			zone := ""
			if zones := w.Cloud.Zones(); f.N%2 == 0 { // in one zone
				zone = zones[f.N/2%len(zones)]
			}
			if zone == "" {
				w.faults.dry = time.Now()
				w.after(f.For, func() { w.faults.dry = time.Time{} })
			}
			for _, g := range w.Groups {
				w.Cloud.NoCapacity(zone, g.Type)
				w.after(f.For, func() { w.Cloud.HasCapacity(zone, g.Type) })
			}
		}, nil},
		"machine-dies": {"a machine is ended by somebody else", 4, 0, func(w *World, f Fault) { w.hurt(f, func(m *machine) { _ = w.Cloud.TerminateInstance(m.ID) }) }, nil},
		"machine-sick": {"the kubelet of a machine falls silent", 3, 15 * time.Minute, func(w *World, f Fault) { w.hurt(f, func(m *machine) { w.fleet.sicken(m, f.For) }) }, nil},
		"sick-unlisted": {"the kubelet of a machine falls silent, and the cloud lists half of its instances now and then", 3, 8 * time.Minute, func(w *World, f Fault) {
			w.hurt(f, func(m *machine) { w.fleet.sicken(m, f.For+4*time.Minute) })
			for at := time.Duration(0); at < f.For+4*time.Minute; at += 80 * time.Second {
				w.after(at, func() { w.Cloud.Inject(aws.Fault{Kind: aws.ShortList, Probability: 0.7, For: 40 * time.Second}) })
			}
		}, nil},
		"sick-missing": {"the kubelet of a machine falls silent, and for a moment the cloud does not know the machine, by its ID neither", 3, 4 * time.Minute, func(w *World, f Fault) {
			w.hurt(Fault{}, func(m *machine) { // the oldest one: that the cloud has not yet heard of a young one is known
				w.fleet.sicken(m, f.For+4*time.Minute)
				w.after(2*time.Minute, func() { w.Cloud.Hide(m.ID, w.Env.Nodecleaner.SightInterval-time.Second) })
			})
		}, nil},
		"evictions-refused": {"evictions are refused: somebody else has just used the budget", 2, 20 * time.Minute, nil, func(f Fault, r *http.Request, random *rand.Rand) wire.Fault {
			if !toAPI(r) || !strings.HasSuffix(r.URL.Path, "/eviction") {
				return wire.Fault{}
			}
			return some(f, random, wire.Fault{Status: http.StatusTooManyRequests})
		}},
		"token-deleted": {"an operator deletes the join token", 1, 0, func(w *World, _ Fault) {
			if id, _ := w.joinToken(); id != "" {
				_ = w.API.Delete("/secrets", "kube-system", "bootstrap-token-"+id, nil)
			}
		}, nil},
		"gap": {"the API server cannot be reached while a user scales a workload to nothing, and afterwards every watch is too old", 3, 4 * time.Minute, func(w *World, f Fault) {
			w.begin(Fault{At: f.At, For: f.For, Kind: "api-cut", Agent: -1, N: 1})
			w.after(5*time.Second, func() { w.Scale(workloads[f.N%len(workloads)].Name, 0) })
			w.after(f.For, w.API.Expire)
		}, nil},
		"handover":   {"whoever changes the cloud next is cut from the API server at that moment, and its change is on its way", 4, 2 * time.Minute, func(w *World, f Fault) { w.faults.arm(f) }, nil},
		"slow-ready": {"machines that join become Ready late", 1, 10 * time.Minute, func(w *World, f Fault) { w.faults.unreadyUntil = time.Now().Add(f.For) }, nil},
		"reborn":     {"a machine is ended by somebody else, new ones take used names and addresses, and somebody approves them by hand (0, 2 of 4) and fall silent (0), or deletes the old Node before the agent's own deletion arrives (1, 3)", 4, 5 * time.Minute, func(w *World, f Fault) { w.reborn(f) }, nil},
		"user-buys":  {"a user raises the target of a group by hand, and scales a workload", 3, 0, func(w *World, f Fault) { w.userBuys(f) }, nil},
		"node-deleted": {"a user deletes a Node", 1, 0, func(w *World, f Fault) {
			w.hurt(f, func(m *machine) { w.deleteNode(m) })
		}, nil},
		"thief": {"somebody asks for the certificate of a machine (0) or of nobody (1), or a machine for a name (2), an address (3) or a Node (4) that is not its own", 3, 0, func(w *World, f Fault) { w.steal(f) }, nil},
		"scale": {"a user scales a workload", 12, 0, func(w *World, f Fault) {
			w.Scale(workloads[f.N%len(workloads)].Name, f.N/16%workloads[f.N%len(workloads)].Replicas)
		}, nil},
	}
}

// faults are those that go on, and the ones to come that machines and agents ask for.
type faults struct {
	world *World

	mu        sync.Mutex
	random    *rand.Rand
	active    []Fault
	armed     []Fault
	never     int
	slowUntil time.Time
	// unreadyUntil: machines that join until then become Ready minutes later.
	unreadyUntil time.Time
	byHandUntil  time.Time // somebody approves the certificate requests of machines
	silentUntil  time.Time // kubelets that have taken a used Node fall silent
	dry          time.Time // since when the cloud has no machines; zero: it has
	staleUntil   time.Time // reads of the cloud may be old until then
}

// begin lets a fault begin. The world's lock is held.
func (w *World) begin(f Fault) {
	k := faultKinds[f.Kind]
	w.Tell("FAULT %s", f)
	w.watch.fault(f)
	if k.strike != nil {
		w.faults.mu.Lock()
		w.faults.active = append(w.faults.active, f)
		w.faults.mu.Unlock()
		w.after(f.For, func() {
			w.faults.mu.Lock()
			defer w.faults.mu.Unlock()
			w.faults.active = slices.DeleteFunc(w.faults.active, func(x Fault) bool { return x == f })
		})
	}
	if k.begin != nil {
		k.begin(w, f)
	}
}

// of is what happens to a request of an agent.
func (f *faults) of(a *Agent, life int, r *http.Request) (out wire.Fault) {
	f.world.watch.request(a, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.active {
		if x.Agent >= 0 && f.world.agents[x.Agent] != a {
			continue
		}
		if s := faultKinds[x.Kind].strike(x, r, f.random); s != (wire.Fault{}) {
			out = s
		}
	}
	for i, x := range f.armed {
		if x.Agent >= 0 && f.world.agents[x.Agent] != a || a.life != life {
			continue
		}
		if x.Kind == "late-deletion" && r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/nodes/") ||
			x.Kind == "kill-at-write" && writes(r) && !strings.Contains(r.URL.Path, "/leases/") && !strings.Contains(r.URL.Path, "/events") ||
			(x.Kind == "kill-at-buy" || x.Kind == "kill-before-buy" || x.Kind == "handover") && toCloud(r) && change(r) != "" {
			f.armed = slices.Delete(f.armed, i, i+1)
			if x.Kind == "late-deletion" {
				node := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
				f.world.after(latency, func() {
					f.world.Tell("user: deletes Node %s, and the deletion of %s is on its way", node, a.name)
					_ = f.world.API.Delete("/nodes", "", node, nil)
				})
				return wire.Fault{Flight: time.Duration(20+x.N%60) * time.Second}
			}
			if x.Kind == "handover" {
				cut := Fault{Kind: "api-cut", N: 1, For: max(x.For, 40*time.Second), Agent: slices.Index(f.world.agents, a), At: time.Since(f.world.Began)}
				f.world.after(latency, func() { f.world.begin(cut) })
				return wire.Fault{Flight: time.Duration(1+x.N%25) * time.Second}
			}
			switch {
			case x.Kind == "kill-before-buy":
				out = wire.Fault{Hang: true}
			case x.Kind == "kill-at-buy" && x.N/3%2 == 1: // it is on its way when its client dies
				out = wire.Fault{Flight: time.Duration(1+x.N/6%45) * time.Second}
			default:
				out.Lost = true
			}
			f.world.after(2*latency, func() { f.world.killFor(a, x) })
			break
		}
	}
	return out
}

// change is what a request to AWS changes; empty: nothing.
func change(r *http.Request) string {
	if r.GetBody == nil {
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	head := make([]byte, 64)
	n, _ := body.Read(head)
	text := string(head[:n])
	switch {
	case strings.Contains(text, "SetDesired"):
		return "purchases"
	case strings.Contains(text, "TerminateInstance"):
		return "terminations"
	}
	return ""
}

func (f *faults) arm(x Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, x)
}

// bootFails and bootDelay are asked for each machine that boots; the world's lock is held.
func (f *faults) bootFails() bool {
	if f.never > 0 {
		f.never--
		f.world.watch.fault(Fault{Kind: "never"}) // its aftermath begins now
		return true
	}
	return false
}

func (f *faults) bootDelay() time.Duration {
	if time.Now().Before(f.slowUntil) {
		return f.world.brisk(f.world.between(time.Minute, 12*time.Minute))
	}
	return 0
}

// readyDelay is how long a machine that has joined is not Ready; the world's lock is held.
func (f *faults) readyDelay() time.Duration {
	if time.Now().Before(f.unreadyUntil) {
		return f.world.brisk(f.world.between(2*time.Minute, 6*time.Minute))
	}
	return f.world.between(5*time.Second, 20*time.Second)
}

// reborn ends a machine and has others come at once: the cloud gives them its name and address, and their kubelets find its Node.
func (w *World) reborn(f Fault) {
	w.hurt(f, func(m *machine) { _ = w.Cloud.TerminateInstance(m.ID) })
	f.For = max(f.For, 5*time.Minute) // a machine takes its own time to come
	w.faults.unreadyUntil = time.Now().Add(f.For)
	if f.N%2 == 0 { // an operator does not wait for the agent, which holds the requests until the old Node has gone
		w.faults.byHandUntil = time.Now().Add(f.For)
		if f.N%4 == 0 {
			w.faults.silentUntil = time.Now().Add(f.For)
		}
	}
	if f.N%2 == 1 {
		w.faults.arm(Fault{Kind: "late-deletion", Agent: -1, N: f.N / 2})
	}
	w.after(25*time.Second, func() { w.Scale(workloads[f.N%len(workloads)].Name, workloads[f.N%len(workloads)].Replicas) })
}

// userBuys changes a group behind the agents' backs.
func (w *World) userBuys(f Fault) {
	g := w.Groups[f.N%len(w.Groups)]
	is, _ := w.Cloud.Group(g.Name)
	to := min(g.Max, is.Desired+1+f.N/8%3)
	w.Tell("user: sets the target of %s from %d to %d", g.Name, is.Desired, to)
	w.watch.granted(to - is.Desired)
	g.Min = is.Min
	if err := w.Cloud.PutGroup(w.groupOf(g, to)); err != nil {
		panic(err)
	}
	w.Scale(workloads[f.N/2%len(workloads)].Name, workloads[f.N/2%len(workloads)].Replicas*3/4)
}

func (w *World) resetWires(f Fault) {
	for i, a := range w.agents {
		if (f.Agent < 0 || f.Agent == i) && a.wire != nil {
			a.wire.Reset()
		}
	}
}

// killFor kills an agent and starts it again.
func (w *World) killFor(a *Agent, f Fault) {
	if a.killed {
		return
	}
	a.Kill()
	after := max(f.For, time.Second)
	w.watch.trouble(after)
	w.faults.dry = time.Time{} // who comes back knows less
	switch f.N % 3 {
	case 1:
		if old := filepath.Join(a.dir, "backup"); exists(old) {
			w.Tell("%s: its files are older ones", a.name)
			_ = copyDir(old, a.stateDir())
		}
	case 2:
		w.Tell("%s: its files are gone", a.name)
		_ = os.RemoveAll(a.stateDir())
	}
	w.after(max(f.For, time.Second), func() { a.Start() })
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// backup keeps the files of every agent, to come back later.
func (w *World) backup() {
	for _, a := range w.agents {
		if !a.killed {
			_ = copyDir(a.stateDir(), filepath.Join(a.dir, "backup"))
		}
	}
	w.after(w.brisk(w.between(10*time.Minute, 90*time.Minute)), w.backup)
}

// hurt picks a machine that has joined.
func (w *World) hurt(f Fault, do func(*machine)) {
	var all []*machine
	for _, m := range w.fleet.list() {
		if m.node && m.ready && !m.sick {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return
	}
	m := all[f.N%len(all)]
	w.Tell("FAULT it is machine %s (%s)", m.ID, m.name)
	w.watch.spare(m)
	do(m)
}

// sicken stops a kubelet for a time.
func (f *fleet) sicken(m *machine, d time.Duration) {
	f.mu.Lock()
	m.sick = true
	f.mu.Unlock()
	f.world.after(d, func() {
		f.mu.Lock()
		m.sick = false
		f.mu.Unlock()
		if !m.serves { // it waited for its certificate when it fell silent
			f.serving(m)
		}
		f.report(m)
		f.beat(m)
	})
}

func (w *World) deleteNode(m *machine) {
	w.watch.expect(m.name)
	_ = w.API.Delete("/nodes", "", m.name, nil)
	var again func()
	again = func() { // an operator starts its kubelet again
		switch {
		case apiserver.Get[*corev1.Node](w.API, "/nodes", "", m.name) != nil || !m.alive:
		case m.sick:
			w.after(time.Minute, again)
		default:
			w.fleet.register(m)
		}
	}
	w.after(time.Minute, again)
}

// Draw draws the faults of a world: storms with calm between them.
func Draw(seed uint64, length time.Duration, agents, tempo int) []Fault {
	r := rand.New(rand.NewPCG(seed, 0xfa017))
	var names []string
	for name, k := range faultKinds {
		for range k.often {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []Fault
	for act := time.Duration(0); act < length; act += actLength / time.Duration(tempo) {
		for at := act + firstFault; at < act+stormLength/time.Duration(tempo); {
			f := Fault{At: at, Kind: names[r.IntN(len(names))], Agent: r.IntN(agents), N: r.IntN(1 << 20)}
			k := faultKinds[f.Kind]
			if k.most > 0 {
				f.For = time.Duration(r.Int64N(int64(k.most)))/time.Duration(tempo) + time.Second
			}
			switch {
			case k.strike != nil && r.IntN(2) == 0, k.strike == nil && f.Kind != "kill" && f.Kind != "stop":
				f.Agent = -1
			}
			out = append(out, f)
			if strings.HasSuffix(f.Kind, "-buy") || f.Kind == "handover" || strings.HasPrefix(f.Kind, "cloud-") && r.IntN(2) == 0 { // something has to happen while it lasts
				out = append(out, Fault{At: at + time.Duration(1+r.IntN(20))*time.Second, Kind: "scale", Agent: -1, N: r.IntN(1 << 20)})
			}
			at += time.Duration(r.ExpFloat64() * float64(meanPause) / float64(tempo))
		}
		if r.IntN(2) == 0 { // behind the storm: no later fault makes the agents list again what the gap has hidden
			out = append(out, Fault{At: act + stormLength/time.Duration(tempo), For: 90 * time.Second, Kind: "gap", Agent: -1, N: r.IntN(1 << 20)})
		}
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return out
}

// The parts of an act.
const (
	actLength   = 4 * time.Hour
	firstFault  = 2 * time.Minute
	stormLength = 2 * time.Hour
	meanPause   = 4 * time.Minute
)
