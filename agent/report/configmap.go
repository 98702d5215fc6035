package report

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// When the status ConfigMap is written: on a change, but no sooner than statusApart
// after the last time, and after statusAgain although nothing changed, so that its
// annotation shows an agent that lives.
const (
	statusApart = 10 * time.Second
	statusAgain = time.Minute
)

const annotationLastUpdated = "cluster-autoscaler.kubernetes.io/last-updated"

// StatusPage keeps Cluster Autoscaler's status ConfigMap. The scaler's goroutine makes
// the page, its own Run writes it: a slow API server holds up no round.
type StatusPage struct {
	client  *kube.Client
	changes *Changes
	mayAct  func() (bool, string)
	pages   chan caStatus // holds the newest page that is not written yet

	// SettingsFault says why groups.yaml as it is now is not in force; nil: it is not known.
	SettingsFault func() string

	madeAt time.Time // these belong to the scaler's goroutine
	print  uint64
	last   caStatus
	fault  string
	owed   bool // a change is not on the last page
	since  map[string]transition
}

// NewStatusPage returns a status page; mayAct tells whether the ConfigMap is ours to remove
// at the end.
func NewStatusPage(client *kube.Client, changes *Changes, mayAct func() (bool, string)) *StatusPage {
	return &StatusPage{client: client, changes: changes, mayAct: mayAct, pages: make(chan caStatus, 1), since: map[string]transition{}}
}

// Round makes a page of a round where one is due. print is the plan's fingerprint.
func (sp *StatusPage) Round(s *cluster.Snapshot, p decision.Plan, m decision.Memory, policy decision.Policy, print uint64) {
	if sp == nil {
		return
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		print = print*31 + uint64(g.Target)*7 + uint64(g.Max) + uint64(g.Min)<<16 + uint64(len(g.Instances))<<32
	}
	sp.fault = sp.settingsFault()
	print = print*31 + uint64(len(s.Nodes)) + uint64(len(sp.fault))<<20
	for _, n := range s.Nodes {
		if n.Ready == cluster.StatusTrue {
			print++
		}
	}
	age := s.Now.Sub(sp.madeAt)
	if sp.owed = print != sp.print && age < statusApart; sp.owed || print == sp.print && age < statusAgain {
		return
	}
	sp.print = print
	made := page(s, p, m, policy, sp.since)
	if sp.fault != "" {
		made.Message = strings.TrimPrefix(made.Message+"; groups.yaml is not in force: "+strings.ReplaceAll(sp.fault, "\n", "; "), "; ")
	}
	sp.offer(made, s.Now)
}

func (sp *StatusPage) settingsFault() string {
	if sp.SettingsFault == nil {
		return ""
	}
	return sp.SettingsFault()
}

// Skip owes nothing: another agent's page is not ours to write.
func (sp *StatusPage) Skip() {
	if sp != nil {
		sp.owed = false
	}
}

// Due is when a page that came too soon after the last is to be made; zero for none.
func (sp *StatusPage) Due() time.Time {
	if sp == nil || !sp.owed {
		return time.Time{}
	}
	return sp.madeAt.Add(statusApart)
}

// Refresh makes the last page again where it is time to show that the agent lives; the
// round is one in which nothing changed.
func (sp *StatusPage) Refresh(s *cluster.Snapshot, p decision.Plan, m decision.Memory, policy decision.Policy, print uint64) {
	switch {
	case sp == nil || sp.madeAt.IsZero():
	case sp.owed || sp.fault != sp.settingsFault():
		sp.Round(s, p, m, policy, print)
	case s.Now.Sub(sp.madeAt) >= statusAgain:
		sp.offer(sp.last.at(s.Now), s.Now)
	}
}

func (sp *StatusPage) offer(made caStatus, now time.Time) {
	sp.madeAt, sp.last = now, made
	for {
		select {
		case sp.pages <- made:
			return
		case <-sp.pages: // not written yet, and old
		}
	}
}

// Run writes pages until ctx ends, and then takes the ConfigMap away, as Cluster
// Autoscaler does when it is stopped.
func (sp *StatusPage) Run(ctx context.Context, beat func()) error {
	tick := time.NewTicker(20 * time.Second)
	defer tick.Stop()
	written := false
	for {
		select {
		case <-tick.C:
			beat()
		case p := <-sp.pages:
			err := sp.write(ctx, p)
			why := ""
			if err != nil && ctx.Err() == nil {
				text, remedy := apierror.Explain(err)
				why = text + " " + remedy
			}
			written = written || err == nil
			sp.changes.Say("status page", why, "the status ConfigMap is written again", "the ConfigMap "+act.StatusObject.Namespace+"/"+act.StatusObject.Name+" is not written")
			beat()
		case <-ctx.Done():
			if may, _ := sp.mayAct(); written && may { // another agent's page stays
				sp.remove(context.WithoutCancel(ctx))
			}
			return nil
		}
	}
}

func (sp *StatusPage) write(ctx context.Context, s caStatus) error {
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
	maps := sp.client.CoreV1().ConfigMaps(cm.Namespace)
	// Without a resourceVersion an update replaces whatever is there: the page is ours
	// as long as the Lease is.
	if _, err = maps.Update(ctx, cm, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	}
	return err
}

func (sp *StatusPage) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := sp.client.CoreV1().ConfigMaps(act.StatusObject.Namespace).Delete(ctx, act.StatusObject.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		sp.changes.Say("status page", err.Error(), "", "the ConfigMap "+act.StatusObject.Namespace+"/"+act.StatusObject.Name+" is not removed")
	}
}
