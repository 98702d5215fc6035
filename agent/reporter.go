package agent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
)

// When the status ConfigMap is written: on a change, but no sooner than statusApart
// after the last time, and after statusAgain although nothing changed, so that its
// annotation shows an agent that lives.
const (
	statusApart = 10 * time.Second
	statusAgain = time.Minute
)

const annotationLastUpdated = "cluster-autoscaler.kubernetes.io/last-updated"

// reporter keeps Cluster Autoscaler's status ConfigMap. The scaler's goroutine makes
// the page, the reporter's own writes it: a slow API server holds up no round.
type reporter struct {
	client kubernetes.Interface
	voice  *voice
	mayAct func() (bool, string)
	pages  chan caStatus // holds the newest page that is not written yet

	madeAt time.Time // these belong to the scaler's goroutine
	print  uint64
	last   caStatus
	owed   bool // a change is not on the last page
	since  map[string]transition
}

func newReporter(client kubernetes.Interface, voice *voice, mayAct func() (bool, string)) *reporter {
	return &reporter{client: client, voice: voice, mayAct: mayAct, pages: make(chan caStatus, 1), since: map[string]transition{}}
}

// saw makes a page of a round where one is due. print is the plan's fingerprint.
func (r *reporter) saw(s *cluster.Snapshot, p decision.Plan, m decision.Memory, policy decision.Policy, print uint64) {
	if r == nil {
		return
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		print = print*31 + uint64(g.Target)*7 + uint64(g.Max) + uint64(g.Min)<<16 + uint64(len(g.Instances))<<32
	}
	print = print*31 + uint64(len(s.Nodes))
	for _, n := range s.Nodes {
		if n.Ready == cluster.StatusTrue {
			print++
		}
	}
	age := s.Now.Sub(r.madeAt)
	if r.owed = print != r.print && age < statusApart; r.owed || print == r.print && age < statusAgain {
		return
	}
	r.print = print
	r.offer(page(s, p, m, policy, r.since), s.Now)
}

// rest owes nothing: another agent's page is not ours to write.
func (r *reporter) rest() {
	if r != nil {
		r.owed = false
	}
}

// due is when a page that came too soon after the last is to be made; zero for none.
func (r *reporter) due() time.Time {
	if r == nil || !r.owed {
		return time.Time{}
	}
	return r.madeAt.Add(statusApart)
}

// still makes the last page again where it is time to show that the agent lives; the
// round is one in which nothing changed.
func (r *reporter) still(s *cluster.Snapshot, p decision.Plan, m decision.Memory, policy decision.Policy, print uint64) {
	switch {
	case r == nil || r.madeAt.IsZero():
	case r.owed:
		r.saw(s, p, m, policy, print)
	case s.Now.Sub(r.madeAt) >= statusAgain:
		r.offer(r.last.at(s.Now), s.Now)
	}
}

func (r *reporter) offer(made caStatus, now time.Time) {
	r.madeAt, r.last = now, made
	for {
		select {
		case r.pages <- made:
			return
		case <-r.pages: // not written yet, and old
		}
	}
}

// Run writes pages until ctx ends, and then takes the ConfigMap away, as Cluster
// Autoscaler does when it is stopped.
func (r *reporter) Run(ctx context.Context, beat func()) error {
	tick := time.NewTicker(20 * time.Second)
	defer tick.Stop()
	written := false
	for {
		select {
		case <-tick.C:
			beat()
		case p := <-r.pages:
			err := r.write(ctx, p)
			why := ""
			if err != nil && ctx.Err() == nil {
				text, remedy := observe.Cause(err)
				why = text + " " + remedy
			}
			written = written || err == nil
			r.voice.say("status page", why, "the status ConfigMap is written again", "the ConfigMap "+act.StatusObject.Namespace+"/"+act.StatusObject.Name+" is not written")
			beat()
		case <-ctx.Done():
			if may, _ := r.mayAct(); written && may { // another agent's page stays
				r.remove(context.WithoutCancel(ctx))
			}
			return nil
		}
	}
}

func (r *reporter) write(ctx context.Context, s caStatus) error {
	text, err := YAML(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: act.StatusObject.Namespace, Name: act.StatusObject.Name, Annotations: map[string]string{annotationLastUpdated: s.Time}},
		Data:       map[string]string{"status": string(text)},
	}
	maps := r.client.CoreV1().ConfigMaps(cm.Namespace)
	// Without a resourceVersion an update replaces whatever is there: the page is ours
	// as long as the Lease is.
	if _, err = maps.Update(ctx, cm, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	}
	return err
}

func (r *reporter) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := r.client.CoreV1().ConfigMaps(act.StatusObject.Namespace).Delete(ctx, act.StatusObject.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.voice.say("status page", err.Error(), "", "the ConfigMap "+act.StatusObject.Namespace+"/"+act.StatusObject.Name+" is not removed")
	}
}
