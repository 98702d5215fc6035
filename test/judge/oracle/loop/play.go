package loop

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// Result is what became of one mix.
type Result struct {
	Pods, Bound, Held int
	Machines          int
	Promised          int      // pods that machines were bought for, by the first purchase
	AtOnce            int      // of them, bound when the machines of the first purchase had come
	Rounds            int      // purchases
	Problems          []string // promises that were not kept
}

// Patience of the loop. kube-scheduler backs off from a pod that it tried in vain, 10 s
// at most, and the plan gives it a turn on new nodes that is a little longer.
const (
	backoff      = 12 * time.Second
	bindPatience = 60 * time.Second
	quietFor     = 1500 * time.Millisecond
	longestTurn  = 30 * time.Second
	mostRounds   = 6
)

// loop is one mix under way.
type loop struct {
	client kubernetes.Interface
	mix    *Mix
	ns     string
	groups []cluster.NodeGroup
	memory decision.Memory
	policy decision.Policy
	made   int
	before int // pods that were bound before the first purchase
	out    io.Writer
}

// Play plays one mix on a cluster that has nothing else in it, and cleans up.
func Play(ctx context.Context, client kubernetes.Interface, seed uint64, out io.Writer) (Result, error) {
	l := &loop{client: client, ns: fmt.Sprintf("mix-%d", seed), out: out}
	l.mix = NewMix(seed, l.ns)
	l.groups = slices.Clone(l.mix.Groups)
	l.policy = decision.Policy{
		Expander: "least-waste", RandomSeed: 1, ExpendablePodsCutoff: -10, MaxNodeProvisionTime: 15 * time.Minute, MaxNodeStartupTime: 15 * time.Minute,
		BackoffInitial: 5 * time.Minute, BackoffMax: 30 * time.Minute, BackoffReset: 3 * time.Hour, OKTotalUnready: 3, MaxTotalUnreadyPercent: 45, EnforceMin: true, FreshFor: time.Minute,
	}
	defer l.clean(context.WithoutCancel(ctx))
	if err := l.furnish(ctx); err != nil {
		return Result{}, fmt.Errorf("seed %d: %w", seed, err)
	}
	r, err := l.run(ctx)
	if err != nil {
		return r, fmt.Errorf("seed %d: %w", seed, err)
	}
	return r, nil
}

// furnish creates what is there before the plan is asked.
func (l *loop) furnish(ctx context.Context) error {
	core := l.client.CoreV1()
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.ns}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, g := range l.mix.Nodes {
		if err := l.addMachine(ctx, g); err != nil {
			return err
		}
	}
	for _, c := range l.mix.Classes {
		if _, err := l.client.StorageV1().StorageClasses().Create(ctx, c, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, c := range l.mix.Claims {
		if _, err := core.PersistentVolumeClaims(l.ns).Create(ctx, c, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	err := until(ctx, 30*time.Second, func() (bool, error) {
		_, err := core.ServiceAccounts(l.ns).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the namespace's service account: %w", err)
	}
	for _, p := range l.mix.Pods {
		if _, err := core.Pods(l.ns).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// addMachine is a machine of a group that joins.
func (l *loop) addMachine(ctx context.Context, group int) error {
	g := &l.groups[group]
	name := fmt.Sprintf("%s-m%d", g.ID, l.made)
	l.made++
	if _, err := l.client.StorageV1().CSINodes().Create(ctx, csiNode(g, name), metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := l.client.CoreV1().Nodes().Create(ctx, node(g, name), metav1.CreateOptions{}); err != nil {
		return err
	}
	g.Target++
	g.Instances = append(slices.Clone(g.Instances), cluster.Instance{ID: cluster.InstanceID("loop:///" + name), Phase: cluster.PhaseRunning, Created: time.Now(), NodeNames: []string{name}, Names: []string{name}, Member: true})
	return nil
}

// run buys until the plan wants nothing more.
func (l *loop) run(ctx context.Context) (Result, error) {
	r := Result{Pods: len(l.mix.Pods)}
	for turns := 0; ; {
		if err := l.settle(ctx); err != nil {
			return r, err
		}
		s, err := l.snapshot(ctx)
		if err != nil {
			return r, err
		}
		bound := 0
		for _, n := range s.Nodes {
			bound += len(n.Pods)
		}
		if r.Rounds == 0 {
			l.before = bound
		}
		p, memory := plan.Decide(s, l.memory, l.policy)
		l.memory = memory
		fmt.Fprintf(l.out, "round %d\n%s", r.Rounds, p)
		promised, err := l.buy(ctx, &p, &r)
		if err != nil {
			return r, err
		}
		if len(promised) == 0 && turns < mostRounds && waitsForTurn(&p) {
			turns++
			if err := until(ctx, longestTurn, func() (bool, error) { return !time.Now().Before(p.Wake), l.provision(ctx) }); err != nil {
				return r, err
			}
			continue
		}
		if len(promised) == 0 {
			return r, l.finish(ctx, &p, &s, &r)
		}
		late, err := l.await(ctx, bound+len(promised))
		if err != nil {
			return r, err
		}
		if r.Rounds++; r.Rounds == 1 {
			r.Promised, r.AtOnce = len(promised), len(promised)-late
		}
		if late > 0 {
			fmt.Fprintf(l.out, "%d of %v are still pending\n", late, promised)
		}
		if r.Rounds == mostRounds {
			r.Problems = append(r.Problems, fmt.Sprintf("the plan still buys after %d rounds", mostRounds))
			return r, l.finish(ctx, &p, &s, &r)
		}
	}
}

// waitsForTurn tells whether pods are held until kube-scheduler has had its turn: the plan may buy for them then.
func waitsForTurn(p *decision.Plan) bool {
	held := slices.ContainsFunc(p.Held, func(h decision.Held) bool { return h.Kind == "pod" && h.Rule == decision.RuleDeferred })
	return held && !p.Wake.IsZero() && time.Until(p.Wake) < longestTurn
}

// buy does what the plan says and returns the pods that it is for.
func (l *loop) buy(ctx context.Context, p *decision.Plan, r *Result) (promised []string, err error) {
	for _, a := range p.Actions {
		grow, ok := a.(decision.Grow)
		if !ok {
			r.Problems = append(r.Problems, "not asked for: "+a.String())
			continue
		}
		i := slices.IndexFunc(l.groups, func(g cluster.NodeGroup) bool { return g.ID == grow.Group })
		for range grow.To - grow.From {
			if err := l.addMachine(ctx, i); err != nil {
				return nil, err
			}
			r.Machines++
		}
		for _, key := range grow.Pods {
			promised = append(promised, strings.TrimPrefix(string(key), l.ns+"/"))
		}
	}
	slices.Sort(promised)
	return promised, nil
}

// await waits until so many pods are bound and returns how many are missing in the
// end. Replicas are alike: which of them gets the place that was bought is not the
// plan's to say.
func (l *loop) await(ctx context.Context, goal int) (missing int, err error) {
	bound, since := -1, time.Now()
	err = until(ctx, bindPatience, func() (bool, error) {
		pods, err := l.pods(ctx)
		if err != nil {
			return false, err
		}
		now := 0
		for i := range pods {
			if pods[i].Spec.NodeName != "" {
				now++
			}
		}
		if now != bound {
			bound, since = now, time.Now()
		}
		return now >= goal || time.Since(since) > backoff, l.provision(ctx)
	})
	if err == errLate {
		err = nil
	}
	return max(0, goal-bound), err
}

// settle waits until kube-scheduler has looked at every pod and nothing moves.
func (l *loop) settle(ctx context.Context) error {
	last, since := "", time.Now()
	err := until(ctx, 40*time.Second, func() (bool, error) {
		if err := l.provision(ctx); err != nil {
			return false, err
		}
		pods, err := l.pods(ctx)
		if err != nil {
			return false, err
		}
		var b strings.Builder
		looked := true
		for i := range pods {
			fmt.Fprintln(&b, pods[i].Name, pods[i].Spec.NodeName)
			looked = looked && (pods[i].Spec.NodeName != "" || unschedulable(&pods[i]))
		}
		if now := b.String(); now != last {
			last, since = now, time.Now()
		}
		return looked && time.Since(since) > quietFor, nil
	})
	if err == errLate {
		return nil // a pod whose claim waits for its volume has neither a node nor a verdict
	}
	return err
}

func unschedulable(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// finish holds the plan to what it said of the pods that are left: of every kind of
// pod no more may stay pending than the plan holds as impossible.
func (l *loop) finish(ctx context.Context, p *decision.Plan, s *cluster.Snapshot, r *Result) error {
	kind := map[cluster.PodKey]int{}
	for pod := range s.AllPods() {
		kind[pod.Key] = pod.Class
	}
	impossible, words, why := map[int]int{}, map[int]string{}, map[int]string{}
	for _, h := range p.Held {
		if h.Kind == "pod" && h.Rule != decision.RuleRoomOnNode && h.Rule != decision.RuleRoomUpcoming {
			k := kind[cluster.PodKey(h.Name)]
			impossible[k] += max(h.Count, 1)
			why[k] = h.String()
		} else if h.Kind == "pod" {
			words[kind[cluster.PodKey(h.Name)]] = h.String()
		}
	}
	var left map[int][]string
	err := until(ctx, 2*backoff, func() (bool, error) {
		pods, err := l.pods(ctx)
		if err != nil {
			return false, err
		}
		left, r.Bound, r.Held = map[int][]string{}, 0, 0
		for i := range pods {
			if pods[i].Spec.NodeName != "" {
				r.Bound++
				continue
			}
			r.Held++
			k := kind[cluster.PodKey(l.ns+"/"+pods[i].Name)]
			left[k] = append(left[k], pods[i].Name)
		}
		for k, names := range left {
			if len(names) > impossible[k] {
				return false, l.provision(ctx)
			}
		}
		return true, nil
	})
	if err != nil && err != errLate {
		return err
	}
	if r.Bound-l.before < r.Promised { // a draw among equal nodes can fill the only host that an affinity allows
		fmt.Fprintf(l.out, "machines were bought for %d pods, and %d more are bound; the others have to be held by name\n", r.Promised, r.Bound-l.before)
	}
	for k, n := range impossible {
		if len(left[k]) < n {
			r.Problems = append(r.Problems, fmt.Sprintf("the plan holds %d pods as impossible, and of their kind only %v are pending: %s", n, left[k], why[k]))
		}
	}
	for k, names := range left {
		if len(names) > impossible[k] {
			slices.Sort(names)
			r.Problems = append(r.Problems, fmt.Sprintf("pending: %v; of them the plan holds %d as impossible: %s", names, impossible[k], words[k]))
		}
	}
	if len(impossible) == 0 || len(r.Problems) > 0 {
		return nil
	}
	return l.doubt(ctx, p, left, r)
}

// doubt buys a machine of every group although the plan says that none would help the
// pods that are left, and sees whether kube-scheduler agrees.
func (l *loop) doubt(ctx context.Context, p *decision.Plan, left map[int][]string, r *Result) error {
	for g := range l.groups {
		if err := l.addMachine(ctx, g); err != nil {
			return err
		}
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	pods, err := l.pods(ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		for _, names := range left {
			if pods[i].Spec.NodeName != "" && slices.Contains(names, pods[i].Name) {
				r.Problems = append(r.Problems, fmt.Sprintf("pod %s is held as impossible, and kube-scheduler binds it to %s when a machine of every group comes", pods[i].Name, pods[i].Spec.NodeName))
			}
		}
	}
	if len(r.Problems) > 0 {
		fmt.Fprintf(l.out, "what was held:\n%s", p)
	}
	return nil
}

func (l *loop) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := l.client.CoreV1().Pods(l.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
