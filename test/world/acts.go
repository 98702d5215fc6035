package world

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/wire"
)

// This file judges what agents do, at the moment at which it arrives: whether they have the right to it, whether anybody needs what
// they buy, and whether what they say of it is true.

// act is a target that reached the cloud.
type act struct {
	at      time.Time
	group   string
	was, to int
	late    bool // its client may have been gone
}

// wanted is what the pods that waited at a moment need, in machines of 4 cores.
type wanted struct {
	at       time.Time
	machines float64
}

// Times of the judge, with an agent's own times; see brisk.
const (
	wantedFor  = 10 * time.Minute // pods that waited so long ago may still be bought for
	comingFor  = 10 * time.Minute // a machine that does not join within it may be replaced
	waitBound  = 10 * time.Minute // pods wait at most so long where nothing has gone wrong for so long
	leastWait  = 5 * time.Minute  // also where the agents' times are short
	saidWithin = 3 * time.Minute  // between an act and the line that tells it
)

// arrives is told of each request of an agent as it arrives; what it returns is called once it was answered with a
// status.
func (j *judge) arrives(a *Agent, r *http.Request) (after func(status int)) {
	nothing := func(int) {}
	what := leaderOnly(r)
	if what == "" {
		return nothing
	}
	sent, flies := wire.Flies(r)
	if !flies {
		j.hasRight(a, what)
	}
	if what == "the deletion of a pod" {
		j.violation("%s deletes %s, and does not ask the Eviction API", a.name, r.URL.Path)
	}
	if !toCloud(r) {
		return nothing
	}
	body, _ := r.GetBody()
	text, _ := io.ReadAll(body)
	form, _ := url.ParseQuery(string(text))
	x := act{group: form.Get("AutoScalingGroupName"), to: -1, late: flies}
	if what == "a purchase" {
		x.to, _ = strconv.Atoi(form.Get("DesiredCapacity"))
	} else {
		i, _ := j.world.Cloud.Instance(form.Get("InstanceId"))
		x.group = i.GroupName
	}
	before, _ := j.world.Cloud.Group(x.group)
	x.was = before.Desired
	if x.to > before.Max {
		j.violation("%s asks for %d machines of %s, whose maximum is %d", a.name, x.to, x.group, before.Max)
	}
	if flies {
		j.overtaken(a, x, sent)
	}
	return func(status int) {
		x.at = time.Now()
		if what == "a purchase" && status == http.StatusForbidden {
			j.refused(a, x)
		}
		if is, _ := j.world.Cloud.Group(x.group); x.to >= 0 && is.Desired != x.to {
			return // it was refused
		}
		j.mu.Lock()
		j.acts = append(j.acts, x)
		j.mu.Unlock()
		if x.to > x.was {
			j.bought(a, x.group, x.was, x.to)
			j.again(a, x)
		}
	}
}

// mostRaises is how often a group may be raised within againIn: what fails waits before it is tried again.
const (
	mostRaises = 8
	againIn    = 10 * time.Minute
)

// again: a group whose machines do not come is not bought in again and again.
func (j *judge) again(a *Agent, x act) {
	j.mu.Lock()
	n := 0
	for _, y := range j.acts {
		if y.group == x.group && y.to > y.was && x.at.Sub(y.at) < j.world.brisk(againIn) {
			n++
		}
	}
	j.mostRaises = max(j.mostRaises, n)
	dry, soon := j.world.faults.dry, false
	for _, y := range j.acts {
		gap := x.at.Sub(y.at)
		soon = soon || !dry.IsZero() && y.group == x.group && y.to > y.was && y.at.After(dry) && gap > knownWithin && gap < j.world.Env.Scaling.BackoffInitial
	}
	j.mu.Unlock()
	if n > mostRaises {
		j.violation("%s raises %s to %d, the %d. time in %s", a.name, x.group, x.to, n, j.world.brisk(againIn))
	}
	if soon {
		j.violation("%s raises %s to %d, and no machine has come for the last raise: the cloud has had none for %s", a.name, x.group, x.to, x.at.Sub(dry).Round(time.Second))
	}
}

// pauseLeast is less than the first pause after a purchase that was refused.
const pauseLeast = 8 * time.Second

// refused: what the cloud does not allow is not asked for again and again.
func (j *judge) refused(a *Agent, x act) {
	j.mu.Lock()
	asked := fmt.Sprint(a.name, " ", a.life, " ", x.group)
	last, again := j.forbidden[asked]
	j.forbidden[asked] = x.at
	j.mu.Unlock()
	if gap := x.at.Sub(last); again && gap < pauseLeast {
		j.violation("%s asks for %d machines of %s, and was refused %s ago", a.name, x.to, x.group, gap.Round(time.Millisecond))
	}
}

// knownWithin is how long after a purchase the cloud tells that no machine comes, and an agent has read it.
const knownWithin = 45 * time.Second

// overtaken: nobody changes a group while an earlier change of it may still arrive.
func (j *judge) overtaken(a *Agent, x act, sent time.Time) {
	j.mu.Lock()
	i := slices.IndexFunc(j.acts, func(y act) bool { return y.group == x.group && y.at.After(sent.Add(2*latency)) && !y.late })
	var made time.Time
	if i >= 0 {
		made = j.acts[i].at
	}
	j.mu.Unlock()
	if i >= 0 {
		j.violation("a change of group %s that %s sent %s ago arrives, and another was made %s ago", x.group, a.name, time.Since(sent).Round(time.Second), time.Since(made).Round(time.Second))
	}
}

// leaderOnly names what only the agent that leads may do; empty: everybody may.
func leaderOnly(r *http.Request) string {
	if toCloud(r) {
		switch change(r) {
		case "purchases":
			return "a purchase"
		case "terminations":
			return "the end of a machine"
		}
		return ""
	}
	path := r.URL.Path
	switch {
	case r.Method == http.MethodGet:
	case strings.HasSuffix(path, "/eviction"):
		return "an eviction"
	case r.Method == http.MethodDelete && strings.Contains(path, "/pods/"):
		return "the deletion of a pod"
	case strings.HasSuffix(path, "/approval"):
		return "an approval"
	case strings.Contains(path, "/nodes/"):
		return "a change of a Node"
	case strings.Contains(path, "/secrets"):
		return "a change of a Secret"
	}
	return ""
}

// hasRight: who changes something holds the Lease, or held it last.
func (j *judge) hasRight(a *Agent, what string) {
	lease := apiserver.Get[*coordinationv1.Lease](j.world.API, "coordination.k8s.io/leases", "kube-system", "autoscaler-agent")
	holder := ""
	if lease != nil && lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if !strings.HasPrefix(holder, a.name+"_") && holder != a.name {
		j.violation("%s makes %s, and the Lease is held by %q", a.name, what, holder)
	}
}

// waits notes the pods that wait for a machine; the scheduler's model tells it.
func (j *judge) waits(queue []*corev1.Pod) {
	now := time.Now()
	j.peak = append(j.peak, need{now, j.world.needs()}) // which may be over before the next look
	var left []float64                                  // cores of machines, first fit
	pods := slices.Clone(queue)
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		x, _ := requests(a)
		y, _ := requests(b)
		return int(y - x)
	})
	for _, p := range pods {
		cpu, memory := requests(p)
		size := max(float64(cpu)/3800, float64(memory)/(14*(1<<30)))
		at := slices.IndexFunc(left, func(l float64) bool { return l >= size })
		if at < 0 {
			left, at = append(left, 1), len(left)
		}
		left[at] -= size
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting = slices.DeleteFunc(j.waiting, func(w wanted) bool { return now.Sub(w.at) > j.world.brisk(wantedFor) })
	j.waiting = append(j.waiting, wanted{now, float64(len(left))})
}

// bought: nobody buys again what is coming already.
func (j *judge) bought(a *Agent, group string, from, to int) {
	w := j.world
	coming, shaky := 0.0, 0.0
	for _, g := range w.Cloud.Groups() {
		size := w.size(g.Name)
		if missing := g.Desired - len(g.Instances); missing > 0 {
			coming += float64(missing) * size
		}
		for _, i := range g.Instances {
			w.fleet.mu.Lock()
			m := w.fleet.machines[i.ID]
			switch {
			case m == nil: // it has not booted yet
				coming += size
			case !m.alive || m.sick || m.never || m.ready && j.isSpared(m.ID):
				shaky += size
			case !m.ready && time.Since(m.since) < w.brisk(comingFor):
				coming += size
			}
			w.fleet.mu.Unlock()
		}
	}
	for _, n := range apiserver.List[*corev1.Node](w.API, "/nodes", "") {
		if n.Spec.ProviderID != "" && (n.Spec.Unschedulable || len(n.Spec.Taints) > 0) {
			shaky += 2 // its pods may be on their way to another machine
		}
	}
	most := 0.0
	j.mu.Lock()
	for _, v := range j.waiting {
		most = max(most, v.machines)
	}
	granted := j.free
	failing := time.Now().Before(j.failing)
	j.mu.Unlock()
	// kube-scheduler spreads the small pods first, and leaves the large ones no machine: the agent buys for what would be bound.
	limit := math.Ceil(most*1.5) + 1 + shaky + granted
	if coming > limit && !failing {
		j.violation("%s raises %s from %d to %d: machines of %.0f times 4 cores are coming, and the pods of the last %s need %.0f", a.name, group, from, to, coming, w.brisk(wantedFor), most)
	}
}

func (j *judge) isSpared(id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.spared[id]
}

// size is a machine of a group, in 4 cores.
func (w *World) size(group string) float64 {
	for _, g := range w.Groups {
		if g.Name == group && g.Type == "m5.2xlarge" {
			return 2
		}
	}
	return 1
}

// granted notes machines that somebody else has asked for; they may come beside those that are needed.
func (j *judge) granted(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.free += 2 * float64(max(n, 0))
	j.world.after(j.world.brisk(time.Hour), func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.free -= 2 * float64(max(n, 0))
	})
}

// said is told of an agent's lines: what they say was done was done.
func (j *judge) said(a *Agent, e *logrus.Entry) {
	group, _ := e.Data["group"].(string)
	from, known := e.Data["from"].(int)
	to, _ := e.Data["to"].(int)
	if e.Level == logrus.InfoLevel && known && strings.HasPrefix(e.Message, "scale-up ") && !strings.Contains(e.Message, ": waits") {
		j.saidBought(a, group, from, to)
		if rule, _ := e.Data["rule"].(string); strings.HasPrefix(rule, "U") {
			j.mu.Lock()
			j.wrote["purchases for pods"] = time.Now()
			j.mu.Unlock()
		}
	}
	if rule, ok := e.Data["rule"].(string); ok && e.Data["service"] == "nodecleaner" {
		j.mu.Lock()
		j.kept[fmt.Sprint(e.Data["node"])] = rule
		j.mu.Unlock()
	}
	if instance, held := strings.CutPrefix(e.Message, "held instance "); held {
		j.mu.Lock()
		j.kept[instance] = fmt.Sprint(e.Data["rule"])
		j.mu.Unlock()
	}
	if strings.Contains(e.Message, "not usable") {
		j.violation("%s was killed, and says: %s (%v)", a.name, e.Message, e.Data["why"])
	}
}

func (j *judge) saidBought(a *Agent, group string, from, to int) {
	is, _ := j.world.Cloud.Group(group)
	j.mu.Lock()
	acts := slices.DeleteFunc(slices.Clone(j.acts), func(x act) bool { return x.group != group || x.to != to || time.Since(x.at) > saidWithin })
	j.mu.Unlock()
	switch {
	case len(acts) == 0 && is.Desired != to && time.Now().After(j.world.faults.staleUntil): // an old read may show a target that was lowered since
		j.violation("%s says that %s was raised from %d to %d, and its target is %d", a.name, group, from, to, is.Desired)
	case len(acts) > 0 && time.Now().After(j.world.faults.staleUntil):
		if x := acts[len(acts)-1]; !x.late && x.was != from && x.was != to {
			j.violation("%s says that %s was raised from %d to %d, and its target was %d", a.name, group, from, to, x.was)
		}
	}
}

// patience: where nothing has gone wrong for a while, no pod waits for long.
func (j *judge) patience() {
	j.mu.Lock()
	calm := time.Since(j.troubled)
	j.mu.Unlock()
	bound := max(j.world.brisk(waitBound), leastWait)
	if calm < bound {
		return
	}
	waiting := map[string]time.Duration{}
	for _, p := range apiserver.List[*corev1.Pod](j.world.API, "/pods", "") {
		if p.Spec.NodeName == "" && p.DeletionTimestamp == nil {
			waiting[p.Name] = time.Since(p.CreationTimestamp.Time)
		}
	}
	names := slices.Sorted(maps.Keys(waiting))
	for _, name := range names {
		if waiting[name] > bound {
			j.violation("pod %s has waited for %s, and nothing has gone wrong for %s (%d pods wait)", name, waiting[name], calm.Round(time.Minute), len(waiting))
			return
		}
	}
}
