package csrsigner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/queue"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// JoinListName is the ConfigMap in kube-system by which units/admission-policy.yaml lets
// the agent's user approve client certificates: Node names, each with the UID of the
// request that is about to be approved. The API server puts no Node on it that is there.
const JoinListName = "autoscaler-agent-joins"

// The policies that speak of the list, as they stand in the API server's answers.
const (
	listPolicy     = "ValidatingAdmissionPolicy 'autoscaler-agent-joins'"
	approvalPolicy = "ValidatingAdmissionPolicy 'autoscaler-agent-approvals-joins'"
)

const (
	// joinListSize is how many requests the policy lets stand on the list.
	joinListSize = 32
	// othersKept is how long an entry of another agent is kept that no pending request in
	// the cache explains: longer than a cache that works is behind.
	othersKept = 15 * time.Minute
	// An approval that the list allows is refused until the API server's own cache has the
	// list: by milliseconds as a rule. It is tried again for that long.
	admissionLag   = 5 * time.Second
	admissionRetry = 5 * time.Millisecond
	slowestRetry   = 200 * time.Millisecond
)

// joinList writes the list. Requests that are judged at the same time share one update:
// the API server compares each update with the Lease of every Node.
type joinList struct {
	client  *kube.Client
	log     *logrus.Entry
	pending func(joinEntry) bool // whether the cache has the request, not decided yet

	turn    chan struct{} // whoever fills its one place writes
	mu      sync.Mutex
	waiting []*listing
	stale   bool               // known may be old
	own     map[joinEntry]bool // of this agent; false: its approval is through, and it leaves the list

	// Whoever has the turn uses the rest.
	known  *corev1.ConfigMap       // as it was last read or written
	others map[joinEntry]time.Time // when an entry of another agent was first seen
	told   bool                    // that there is no list
}

// joinEntry is one line of the list.
type joinEntry struct{ node, uid string }

// listing is an entry that somebody waits for.
type listing struct {
	joinEntry
	done   bool
	listed bool
	err    error
}

func newJoinList(client *kube.Client, log *logrus.Entry, pending func(joinEntry) bool) *joinList {
	return &joinList{client: client, log: log, pending: pending, turn: make(chan struct{}, 1), own: map[joinEntry]bool{}, others: map[joinEntry]time.Time{}}
}

// enter puts e on the list. again: an approval was refused although e had been put there,
// so that the list is read anew. Where there is no list that this agent may write, listed
// is false, and the API server decides by itself.
func (l *joinList) enter(ctx context.Context, e joinEntry, again bool) (listed bool, err error) {
	mine := &listing{joinEntry: e}
	l.mu.Lock()
	l.waiting = append(l.waiting, mine)
	l.own[e] = true
	l.stale = l.stale || again
	l.mu.Unlock()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return false, l.giveUp(ctx, mine)
	}
	for !mine.done { // else by whoever had the turn before
		l.writeAll(ctx, l.take())
		if !mine.done && ctx.Err() != nil {
			return false, l.giveUp(ctx, mine)
		}
	}
	return mine.listed, mine.err
}

func (l *joinList) giveUp(ctx context.Context, mine *listing) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(x *listing) bool { return x == mine })
	return context.Cause(ctx)
}

// leave says that the approval of e is through, or given up: if e is on the list, the next
// update drops it.
func (l *joinList) leave(e joinEntry, listed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own[e] = false; !listed {
		delete(l.own, e)
	}
}

func (l *joinList) take() []*listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stale {
		l.known, l.stale = nil, false
	}
	n := min(len(l.waiting), joinListSize)
	batch := l.waiting[:n:n]
	l.waiting = slices.Clone(l.waiting[n:])
	return batch
}

// writeAll ends the waiting of a batch. The end of the caller's own time is not that of
// the others: they go back, and the next of them writes.
func (l *joinList) writeAll(ctx context.Context, batch []*listing) {
	listed, err := l.write(ctx, batch)
	if err != nil && ctx.Err() != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = append(batch, l.waiting...)
		return
	}
	if len(batch) > 1 && refusedBy(err, listPolicy) { // one of them has a Lease
		for i := range batch {
			l.writeAll(ctx, batch[i:i+1:i+1])
		}
		return
	}
	for _, x := range batch {
		x.done, x.listed, x.err = true, listed, err
	}
}

// write puts a batch on the list, over the changes of other agents.
func (l *joinList) write(ctx context.Context, batch []*listing) (listed bool, err error) {
	api := l.client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if l.known == nil {
			if l.known, err = api.Get(ctx, JoinListName, metav1.GetOptions{}); err != nil {
				l.known = nil
				return false, l.unlessMissing(err)
			}
		}
		if !slices.ContainsFunc(batch, func(x *listing) bool { return l.known.Data[x.node] != x.uid }) {
			return true, nil
		}
		next := l.known.DeepCopy()
		next.Data = l.merge(l.known.Data, batch)
		next.ManagedFields = []metav1.ManagedFieldsEntry{{}} // none: they would double what the policy costs for each Lease
		l.known = nil
		next, err = api.Update(ctx, next, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			return false, l.unlessMissing(err)
		}
		l.known = next
		return true, nil
	}
}

// unlessMissing takes a list that is not there, or may not be written, for none: the
// manifests are older than the agent.
func (l *joinList) unlessMissing(err error) error {
	if !apierrors.IsNotFound(err) && (!apierrors.IsForbidden(err) || strings.Contains(err.Error(), "ValidatingAdmissionPolicy")) {
		return err
	}
	if !l.told {
		l.told = true
		l.log.WithField("why", err.Error()).Warn("the list of joins cannot be written: whoever steals the agent's credential gets the certificate of any worker (kubectl apply -f admission-policy.yaml -f rbac.yaml)")
	}
	return nil
}

// merge adds a batch to what is kept of the list: this agent's approvals that are under
// way, requests that are pending, and what another agent may have put there a moment ago.
// Where that is too much the batch goes before all, and what is pending before the rest.
func (l *joinList) merge(old map[string]string, batch []*listing) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]string{}
	for _, x := range batch {
		out[x.node] = x.uid
	}
	var sure, kept []joinEntry
	seen := map[joinEntry]time.Time{}
	for _, node := range slices.Sorted(maps.Keys(old)) {
		e := joinEntry{node, old[node]}
		under, own := l.own[e]
		first, known := l.others[e]
		if !known {
			first = time.Now()
		}
		switch {
		case out[node] != "":
		case under || !own && l.pending(e):
			sure = append(sure, e)
		case !own && time.Since(first) < othersKept:
			kept = append(kept, e)
			seen[e] = first
		}
	}
	l.others = seen
	maps.DeleteFunc(l.own, func(e joinEntry, under bool) bool { return !under && old[e.node] != e.uid })
	for _, e := range append(sure, kept...) {
		if len(out) < joinListSize {
			out[e.node] = e.uid
		}
	}
	return out
}

// isPending tells whether the cache has a request of ours that waits for a decision.
func (s *Service) isPending(e joinEntry) bool {
	objects, err := s.joins.GetIndexer().ByIndex(byKey, joinPrefix+e.node)
	return err == nil && slices.ContainsFunc(objects, func(o any) bool {
		csr, ok := o.(*certificatesv1.CertificateSigningRequest)
		return ok && string(csr.UID) == e.uid
	})
}

// carryOut writes a verdict, that of a join by way of the list.
func (s *Service) carryOut(ctx context.Context, key string, csr *certificatesv1.CertificateSigningRequest, v rules.Verdict) error {
	if v.Do == rules.Approve && isJoin(key) {
		return s.approveJoin(ctx, csr, v)
	}
	return s.write(ctx, csr, v)
}

// unlisted holds a join that the API server keeps off the list (J14).
func (s *Service) unlisted(key string, req rules.Request, f rules.Facts, refusal error) queue.Outcome {
	f.Join.Unlisted = refusal.Error()
	s.report(key, req, f, rules.Decide(req, f))
	return s.patience(req)
}

// approveJoin puts a request on the list of joins, then approves it.
func (s *Service) approveJoin(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, v rules.Verdict) error {
	node, _ := whoAsks(csr.Spec.Request)
	e := joinEntry{node, string(csr.UID)}
	listed := false
	defer func() { s.list.leave(e, listed) }()
	began := time.Time{}
	for pause := admissionRetry; ; pause = min(2*pause, slowestRetry) {
		var err error
		if listed, err = s.enlist(ctx, e, !began.IsZero()); err != nil {
			return err
		}
		err = s.write(ctx, csr, v)
		if !listed || !refusedBy(err, approvalPolicy) {
			return err
		}
		if began.IsZero() {
			began = time.Now()
		} else if time.Since(began) > admissionLag {
			return err
		}
		sleep(ctx, pause, nil)
	}
}

// enlist is a write like any other: it asks who leads, and ends before the lead can.
func (s *Service) enlist(ctx context.Context, e joinEntry, again bool) (bool, error) {
	ctx, cancel, err := s.mayWrite(ctx)
	if err != nil {
		return false, err
	}
	defer cancel()
	return s.list.enter(ctx, e, again)
}

// refusedBy tells that one of our own policies refused a write.
func refusedBy(err error, policy string) bool {
	return (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) && strings.Contains(err.Error(), policy)
}
