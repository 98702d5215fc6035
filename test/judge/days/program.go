package days

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/test/judge/worlds"
)

// Moment is what another program is asked, as one line of JSON: the cluster and the cloud now.
type Moment struct {
	Day     string                          `json:"day"` // a program that sees another day forgets what it knows
	Now     time.Time                       `json:"now"`
	Groups  []MomentGroup                   `json:"groups"`
	Nodes   []*corev1.Node                  `json:"nodes"`
	Pods    []*corev1.Pod                   `json:"pods"` // all; those that kube-scheduler gave up on have the condition PodScheduled=False
	Budgets []*policyv1.PodDisruptionBudget `json:"budgets"`
	Refused []string                        `json:"refused"` // of the last answer's acts, in words
}

// MomentGroup is a node group.
type MomentGroup struct {
	ID        string       `json:"id"`
	Price     float64      `json:"price"`
	Min       int          `json:"min"`
	Max       int          `json:"max"`
	Target    int          `json:"target"`
	Template  *corev1.Node `json:"template"`
	Instances []Machine    `json:"instances"`
}

// Machine is an instance; its provider ID is that of its Node.
type Machine struct {
	ID    string `json:"id"`
	Phase string `json:"phase"`
}

// Acts is what a program does, as one line of JSON. It is asked again at Next, ten seconds later
// where that is zero.
type Acts struct {
	Acts   []Act     `json:"acts"`
	Next   time.Time `json:"next"`
	Millis float64   `json:"cpuMillis"`
	Error  string    `json:"error"` // ends the day
}

// Act is one: Do is grow (Group, To), mark, unmark, soften, unsoften (Node), evict (Pod),
// terminate (Group, Instance).
type Act struct {
	Do       string `json:"do"`
	Group    string `json:"group,omitempty"`
	To       int    `json:"to,omitempty"`
	Node     string `json:"node,omitempty"`
	Pod      string `json:"pod,omitempty"`
	Instance string `json:"instance,omitempty"`
}

// program is a scaler that is a child process.
type program struct {
	peer    *worlds.Peer
	refused []string
}

func startProgram(ctx context.Context, path string) (scaler, error) {
	p, err := worlds.StartPeer(ctx, path)
	if err != nil {
		return nil, err
	}
	return &program{peer: p}, nil
}

// Close ends the child process.
func (x *program) Close() error { return x.peer.Close() }

func (*program) moved(*world, store.Urgency) {}
func (*program) came(*world)                 {}

func (x *program) start(w *world) { x.ask(w, w.clock.Now.Add(scanInterval)) }

func (x *program) ask(w *world, at time.Time) {
	w.clock.At(at, func() {
		var a Acts
		if err := x.peer.Exchange(x.moment(w), &a); err != nil {
			w.failed = err
			return
		}
		if a.Error != "" {
			w.failed = fmt.Errorf("the program answers: %s", a.Error)
			return
		}
		w.report.decided(w, time.Duration(a.Millis*float64(time.Millisecond)))
		x.refused = nil
		for _, act := range a.Acts {
			if err := act.do(w); err != nil {
				x.refused = append(x.refused, fmt.Sprintf("%+v: %s", act, err))
			}
		}
		if !a.Next.After(w.clock.Now) {
			a.Next = w.clock.Now.Add(scanInterval)
		}
		x.ask(w, a.Next)
	})
}

func (x *program) moment(w *world) *Moment {
	m := &Moment{Day: fmt.Sprint(w.day.Kind, w.day.Seed), Now: w.clock.Now, Refused: x.refused}
	for _, g := range w.groups {
		o := MomentGroup{ID: string(g.ID), Price: g.Price, Min: g.Min, Max: g.Max, Target: g.Target, Template: nodeOf(&g.Template, string(g.ID))}
		for _, i := range g.machines {
			o.Instances = append(o.Instances, Machine{string(i.ID), string(i.Phase)})
		}
		m.Groups = append(m.Groups, o)
	}
	for _, n := range w.nodes {
		m.Nodes = append(m.Nodes, n.object)
	}
	for _, p := range w.pods {
		m.Pods = append(m.Pods, p.object)
	}
	for _, s := range w.services {
		if s.Budget {
			m.Budgets = append(m.Budgets, s.disruptions())
		}
	}
	return m
}

// disruptions is the PodDisruptionBudget of a service.
func (s *service) disruptions() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.Name},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": s.Name}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(s.allowed)}}
}

func (a *Act) do(w *world) error {
	g, n := w.group(cluster.GroupID(a.Group)), w.node(a.Node)
	switch {
	case a.Do == "grow" && g != nil && a.To > g.Target && a.To <= g.Max:
		w.grow(g, a.To, "", nil, false)
	case (a.Do == "mark" || a.Do == "unmark") && n != nil:
		w.mark(n, a.Do == "mark")
	case (a.Do == "soften" || a.Do == "unsoften") && n != nil:
		w.soften(n, a.Do == "soften")
	case a.Do == "evict":
		if i := slices.IndexFunc(w.pods, func(p *pod) bool { return string(key(p)) == a.Pod && p.node != nil }); i >= 0 {
			return w.evict(w.pods[i])
		}
	case a.Do == "terminate" && g != nil:
		if i := slices.IndexFunc(g.machines, func(m *machine) bool { return string(m.ID) == a.Instance }); i >= 0 {
			return w.terminate(g.machines[i], "")
		}
	default:
		return fmt.Errorf("no such act, group or node, or no such target")
	}
	return nil
}
