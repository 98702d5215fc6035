package reaper

import (
	"cmp"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Input is one moment of the world. The order of its slices means nothing.
type Input struct {
	Now time.Time
	// Nodes are all Nodes of the cluster.
	Nodes []cluster.Node
	// Groups are the result of the last read of the cloud; ReadProblem is its error, if any.
	Groups      []cluster.NodeGroup
	ReadProblem string
	// Own are the Nodes of this machine; they are never deleted, nor is another Node with
	// the provider ID of one of them.
	Own []cluster.NodeName
	// Outage is the reason why this agent cannot watch the cluster now (it does not lead,
	// the API server does not answer). Timers start again after it (B3).
	Outage string
	// Sent are instances that the scaler itself has terminated.
	Sent []cluster.InstanceID
	// Coexist is the reason why deletions are a cloud controller manager's business (C1).
	Coexist string
	// Attached counts the VolumeAttachments by Node.
	Attached map[cluster.NodeName]int
	// Wanted are Node names that new machines wait for (S1).
	Wanted []cluster.NodeName
	// Answers are the cloud's answers about instances, by the provider IDs as the Nodes have
	// them; AskedAt is the time of the question.
	Answers map[cluster.InstanceID]cluster.Testimony
	AskedAt time.Time
	// Leases are the kubelets' Leases that were just read.
	Leases map[cluster.NodeName]Lease
	// Certified are the newest requests for a kubelet's client certificate that were approved for a Node's name.
	Certified map[cluster.NodeName]time.Time
}

// Policy is the part of nodecleaner's configuration that decides.
type Policy struct {
	SightInterval   time.Duration
	GoneGrace       time.Duration
	SentGrace       time.Duration
	Grace           time.Duration
	KnownFor        time.Duration
	MaxShare        float64
	FreezeFor       time.Duration
	MassHold        time.Duration
	UnledgeredEvery time.Duration
	DetachFor       time.Duration
	// BreakErrors failed reads within BreakWithin freeze (B6); 0 switches that off.
	BreakErrors int
	BreakWithin time.Duration
	Silence     time.Duration
	// Observe deletes nothing and names the Nodes that would be deleted (M1).
	Observe bool
	// ObserveFirst is for how long after its installation an agent only observes (M2).
	ObserveFirst time.Duration
}

// Memory is carried from one decision to the next. The zero Memory is safe: it only makes
// Decide wait longer.
type Memory struct {
	// Seen is the ledger of instances that a whole read once listed as members of a
	// managed group.
	Seen map[cluster.InstanceID]Record `json:"seen,omitempty"`
	// Watch holds the Nodes that may be dead, by name.
	Watch map[cluster.NodeName]Watch `json:"watch,omitempty"`
	// FrozenUntil is the end of the last freeze (B3), FrozenWhy its reason.
	FrozenUntil time.Time `json:"frozenUntil,omitzero"`
	FrozenWhy   string    `json:"frozenWhy,omitempty"`
	// LastRound is when Decide was last called.
	LastRound time.Time `json:"lastRound,omitzero"`
	// LastUnledgered is the time of the last deletion of a Node that was not removed by a scale-down.
	LastUnledgered time.Time `json:"lastUnledgered,omitzero"`
	// Unledgered are the times of such deletions within the last MassHold (B2).
	Unledgered []time.Time `json:"unledgered,omitempty"`
	// MassSince is since when too many Nodes that were not removed by a scale-down are gone (B2, B4).
	MassSince time.Time `json:"massSince,omitzero"`
	// Errors are the last failed reads of the cloud; CloudUntil the end of their
	// freeze (B6).
	Errors     []time.Time `json:"errors,omitempty"`
	CloudUntil time.Time   `json:"cloudUntil,omitzero"`
	// Doubts are Nodes whose provider ID may be another machine's, and why (E7).
	Doubts map[cluster.UID]string `json:"doubts,omitempty"`
	// GroupsRead is when each group was last read whole.
	GroupsRead map[cluster.GroupID]time.Time `json:"groupsRead,omitempty"`
	// Installed is when an agent first ran with this memory (M2).
	Installed time.Time `json:"installed,omitzero"`
}

// Record is the ledger's entry of one instance.
type Record struct {
	Group cluster.GroupID `json:"group"`
	// Declared and Account (the Quota) are the group's. They tell the cloud and region of a
	// machine whose group is declared in a file.
	Declared bool      `json:"declared,omitempty"`
	Account  string    `json:"account,omitempty"`
	Zone     string    `json:"zone,omitempty"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	// Launched is when the cloud started the instance; zero: the cloud does not tell.
	Launched time.Time `json:"launched,omitzero"`
	// Unlisted is the last read of its group before First; zero: there was none.
	Unlisted time.Time `json:"unlisted,omitzero"`
	// Sent tells that the instance was removed by a scale-down: its Node carried the ToBeDeleted
	// taint once, or the scaler said so. A taint may be stripped later by a restarted
	// Cluster Autoscaler; this stays.
	Sent bool `json:"sent,omitempty"`
	// Ended tells that the scaler itself ended it, and that the cloud took the call.
	Ended bool `json:"ended,omitempty"`
	// Late tells that it had ended already when it was first seen: the agent does not know
	// which Node it backed.
	Late bool `json:"late,omitempty"`
	// Leaving tells that it was on its way out, or had ended, when it was last listed.
	Leaving bool `json:"leaving,omitempty"`
	// Gone is the time of the first read that listed it as terminated, Absent the time of
	// the first read that did not list it any more, or of the cloud's last word by ID that it exists all the same; zero: none.
	Gone   time.Time `json:"gone,omitzero"`
	Absent time.Time `json:"absent,omitzero"`
	// Strayed is the time of the last question for it because its Node was Ready and no group
	// listed it.
	Strayed time.Time `json:"strayed,omitzero"`
	// Lost is since when the answers to those questions have been that it has ended.
	Lost time.Time `json:"lost,omitzero"`
	// Known are the names, without domain, and the addresses that it had while it existed.
	Known string `json:"known,omitempty"`
	// SystemUUID, MachineID and BootID are what its kubelet reported while the cloud said that it exists. No cloud tells them for
	// certain: EC2's UUIDs do not follow from the instance ID, and a bare-metal server of Nova has its hardware's.
	SystemUUID string `json:"systemUUID,omitempty"`
	MachineID  string `json:"machineID,omitempty"`
	BootID     string `json:"bootID,omitempty"`
	// Rebooted is another boot ID that its Node reports, and since when; a later word of the cloud that it exists confirms it.
	Rebooted string    `json:"rebooted,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Beat is the heartbeat of its Node when the instance had been over for a while: a newer one is another machine's.
	Beat time.Time `json:"beat,omitzero"`
}

// Watch is the memory of a Node that is not Ready.
type Watch struct {
	UID        cluster.UID `json:"uid"`
	ProviderID string      `json:"providerID"`
	// Since is when the Node began to look dead, or when an outage ended.
	Since time.Time `json:"since"`
	// LookAt is the time from which a read of the cloud is asked for. An earlier read is a
	// sight, too; Looked is the newest read that was stored.
	LookAt time.Time `json:"lookAt"`
	Looked time.Time `json:"looked,omitzero"`
	// First is the time of the first read that said "gone", Last of the newest; zero: none.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Positive tells that both reads listed the instance as terminated.
	Positive bool `json:"positive,omitempty"`
	// Alive counts reads in a row that said "alive"; each doubles the wait for the next one.
	Alive int `json:"alive,omitempty"`
	// Fenced is since when the Node is seen with the out-of-service taint (N4).
	Fenced time.Time `json:"fenced,omitzero"`
	// Asked is the cloud's answer by ID (G5), Pulse the movement of the Lease (L2).
	Asked Asked      `json:"asked,omitzero"`
	Pulse leaseWatch `json:"pulse,omitzero"`
}

// Plan lists the actions for the Nodes of this moment.
type Plan struct {
	Delete []Deletion
	// Fence are Nodes to put out of service, so that their volumes can be detached.
	Fence []Deletion
	// Shutdown are the taints of stopped instances to write or to remove.
	Shutdown []Mark
	Held     []Held
	// Claims are the annotations to write on living Nodes; they tell a leader without this
	// ledger that the Nodes are managed.
	Claims []Claim
	// Ask are the instances to ask the cloud for by ID, Leases the Nodes whose Leases are to
	// be read now; the next decision uses the answers.
	Ask    []cluster.InstanceID
	Leases []cluster.NodeName
	// AskAt is when the next question is due; zero: none is.
	AskAt time.Time
	// Breakers are the open breakers, each with its ID.
	Breakers []Breaker
	// ReadSince asks for a read of the cloud that is no older than this, and for a
	// decision on it, as soon as ReadSince is past. Zero: no read is wanted.
	ReadSince time.Time
	// Due is when to decide again at the latest; zero: when something changes.
	Due time.Time
}

// Deletion is one Node to delete and the proof.
type Deletion struct {
	Node       cluster.NodeName
	UID        cluster.UID
	ProviderID string
	BootID     string
	Group      cluster.GroupID
	Rule       string
	Why        string
	Ledgered   bool
}

// Mark writes the taint of a stopped instance on a Node, or removes ours.
type Mark struct {
	Node cluster.NodeName
	UID  cluster.UID
	On   bool
}

// Claim is one Node with the group of its instance and the boot ID of its machine.
type Claim struct {
	Node   cluster.NodeName
	UID    cluster.UID
	Group  cluster.GroupID
	BootID string
}

// Held is one Node that is not Ready and stays, with the rule that holds it. Would tells
// that only C1, M1 or M2 holds it.
type Held struct {
	Node  cluster.NodeName
	Rule  string
	Why   string
	Would bool
}

// Breaker is one open breaker.
type Breaker struct{ Rule, Why string }

// Times that are not worth a setting.
const (
	// aliveLookMax is the longest time between two reads asked for because of an instance
	// that lives while its Node is not Ready; the first wait is half a SightInterval, and
	// each next one is twice as long. Reads for other reasons are used, too.
	aliveLookMax = 10 * time.Minute
	// unknownLook is the longest wait after a read without a statement about the instance.
	unknownLook = 10 * time.Second
	// forgetAfter is how long the ledger keeps an instance that has no Node and is not listed.
	forgetAfter = 24 * time.Hour
)

// The taints of the field that nodecleaner writes. The value of the second marks ours.
const (
	TaintOutOfService = cluster.TaintOutOfService
	OutOfServiceValue = "nodeshutdown"
	TaintShutdown     = cluster.TaintShutdown
	ShutdownValue     = "autoscaler-agent"
)

// Decide returns the Plan of one moment and the next Memory. It is a function of its
// arguments and changes neither of them. Two calls with the same read count as one sight.
func Decide(in Input, m Memory, p Policy) (Plan, Memory) {
	x := newMoment(in, m, p)
	var plan Plan
	var dead, watched []*candidate
	watch := make(map[cluster.NodeName]Watch, len(x.memory.Watch))
	for _, n := range x.nodes {
		c := x.candidate(n)
		x.mark(c, &plan)
		x.claim(c, &plan)
		if n.Ready == cluster.StatusTrue {
			continue
		}
		rule, why := c.rule, c.why
		if rule == "" {
			rule, why = first(proofChecks, c, x)
			watch[n.Name] = c.watch
			watched = append(watched, c)
			plan.wake(c.watch.LookAt)
		}
		if rule != "" {
			plan.hold(c, rule, why)
			continue
		}
		dead = append(dead, c)
	}
	x.memory.Watch = watch
	x.ask(watched, &plan)
	wantLeases(watched, &plan)
	x.census(watch)
	for _, c := range dead {
		x.release(c, &plan)
	}
	x.name(&plan)
	x.memory.LastRound = in.Now
	return plan, x.memory
}

// first asks the rules in their order and returns the first objection.
func first(list []check, c *candidate, x *evaluation) (rule, why string) {
	for _, rule := range list {
		if why := rule.holds(c, x); why != "" {
			return rule.id, why
		}
	}
	return "", ""
}

// release asks the breakers about a Node that is proven gone, and plans its deletion.
func (x *evaluation) release(c *candidate, plan *Plan) {
	rule, why := first(breakerChecks, c, x)
	x.memory.Watch[c.node.Name] = c.watch // N4 began to wait
	if c.fence {
		plan.Fence = append(plan.Fence, c.deletion())
	}
	if rule != "" {
		x.stopped[rule] = why
		plan.hold(c, rule, why)
		return
	}
	if !c.sent {
		x.memory.LastUnledgered = x.in.Now
		x.memory.Unledgered = append(slices.Clone(x.memory.Unledgered), x.in.Now)
	}
	plan.Delete = append(plan.Delete, c.deletion())
}

// evaluation is the state of one call of Decide, shared by all rules.
type evaluation struct {
	in          Input
	policy      Policy
	memory      Memory // the next memory, as far as it is computed
	view        *view
	nodes       []cluster.Node
	own         map[cluster.NodeName]bool
	ownInstance map[cluster.InstanceID]bool
	wanted      map[cluster.NodeName]bool

	frozen      string // B3, and until when
	frozenUntil time.Time
	cloudFrozen string // B6
	cloudUntil  time.Time
	mass        string            // B2
	zones       map[string]string // B4, by zone
	stopped     map[string]string // breakers that held a Node, with their words

	sharing map[cluster.InstanceID][]string // names of Nodes by their instance
	chosen  map[place][]cluster.Node        // canaries
}

func newMoment(in Input, m Memory, p Policy) *evaluation {
	x := &evaluation{in: in, policy: p, memory: m.Clone(), own: map[cluster.NodeName]bool{}, ownInstance: map[cluster.InstanceID]bool{},
		wanted: map[cluster.NodeName]bool{}, zones: map[string]string{}, stopped: map[string]string{},
		sharing: map[cluster.InstanceID][]string{}, chosen: map[place][]cluster.Node{}}
	x.nodes = slices.Clone(in.Nodes)
	slices.SortFunc(x.nodes, func(a, b cluster.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, name := range in.Own {
		x.own[name] = true
	}
	for _, n := range x.nodes {
		if n.ProviderID == "" {
			continue
		}
		id := machine(n.ProviderID)
		x.sharing[id] = append(x.sharing[id], string(n.Name))
		if x.own[n.Name] {
			x.ownInstance[id] = true
		}
	}
	for _, name := range in.Wanted {
		x.wanted[name] = true
	}
	x.view = newView(in)
	x.memory.install(in.Now)
	x.memory.learn(in, x.view, x.nodes)
	x.view.findNameless(x.memory, p)
	x.freeze()
	x.countErrors()
	x.suspect()
	x.hearStrays()
	return x
}

func (p *Plan) hold(c *candidate, rule, why string) {
	p.Held = append(p.Held, Held{Node: c.node.Name, Rule: rule, Why: why, Would: c.would})
	if !c.due.IsZero() && (p.Due.IsZero() || c.due.Before(p.Due)) {
		p.Due = c.due
	}
}

// wake asks for a read at t; the earliest request counts.
func (p *Plan) wake(t time.Time) {
	if p.ReadSince.IsZero() || t.Before(p.ReadSince) {
		p.ReadSince = t
	}
}

func tainted(n cluster.Node) bool { return Carries(n, cluster.TaintToBeDeleted) }

func unreachable(n cluster.Node) bool { return Carries(n, "node.kubernetes.io/unreachable") }

func outOfService(n cluster.Node) bool { return Carries(n, TaintOutOfService) }

// Carries reports whether n has a taint of that key.
func Carries(n cluster.Node, key string) bool {
	return slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return t.Key == key })
}
