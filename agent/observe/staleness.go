package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
)

// watchFailure is the last error of one watch.
type watchFailure struct {
	at              time.Time
	err             error
	resourceVersion string // the watch's resource version when the trouble was seen
	watch           watched
}

// watched is an informer or a Reflector.
type watched interface{ LastSyncResourceVersion() string }

// APIServerAnswered notes that the API server answered just now: the Lease was read or
// renewed.
func (o *Observer) APIServerAnswered() {
	o.mu.Lock()
	o.lastAnswer = time.Now()
	o.mu.Unlock()
}

// dispensable are the watches that the agent can do without, and what it misses then: a
// ClusterRole from before they were added must not keep it from starting.
var dispensable = map[string]string{
	"limitranges":    "what a LimitRange adds to the requests of DaemonSets is counted once one of their pods runs, and not before",
	"resourcequotas": "pods that a quota lets no controller make may be counted until the controller has written its first status",
	"runtimeclasses": "what a RuntimeClass adds to the pods of DaemonSets is counted once one of them runs, and not before",
}

// doesWithout tells that a watch is forbidden and that the agent works without it.
func (o *Observer) doesWithout(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.without[name]
}

// watchFailed notes an error of a watch. A watch that is forbidden and dispensable makes
// nothing stale; it goes on trying, so that the right may come while the agent runs.
func (o *Observer) watchFailed(name string, w watched, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if missed, can := dispensable[name]; can && apierrors.IsForbidden(err) {
		if !o.without[name] {
			o.log.WithField("why", err.Error()).Warnf("not allowed to watch %s: %s; remedy: kubectl apply -f rbac.yaml", name, missed)
		}
		o.without[name] = true
		return
	}
	o.watchFailures[name] = watchFailure{at: time.Now(), err: err, resourceVersion: w.LastSyncResourceVersion(), watch: w}
}

// Stale returns the reason why the Kubernetes facts may be old; empty while they are
// current. A watch with an error counts as broken until it has received a newer resource
// version, or has had no error for a minute, which is longer than the reflector's
// longest pause between attempts.
func (o *Observer) Stale() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if silent := now.Sub(o.lastAnswer); silent > o.cfg.StaleAfter {
		return fmt.Sprintf("the API server has not answered since %s", o.lastAnswer.UTC().Format(time.RFC3339))
	}
	var texts, remedies []string
	names := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(o.watchFailures)) {
		t := o.watchFailures[name]
		if now.Sub(t.at) > time.Minute || t.watch.LastSyncResourceVersion() != t.resourceVersion {
			delete(o.watchFailures, name)
			continue
		}
		if now.Sub(t.at) > o.cfg.StaleAfter || t.resourceVersion == "" {
			text, remedy := apierror.Explain(t.err)
			if names[text] == nil {
				texts = append(texts, text)
			}
			names[text] = append(names[text], name)
			if remedy != "" && !slices.Contains(remedies, remedy) {
				remedies = append(remedies, remedy)
			}
		}
	}
	for i, text := range texts {
		texts[i] = "watch " + strings.Join(names[text], ", ") + ": " + text
	}
	if len(remedies) > 0 {
		texts = append(texts, "remedy: "+strings.Join(remedies, "; "))
	}
	return strings.Join(texts, "; ")
}
