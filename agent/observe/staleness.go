package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/apierror"
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

// watchFailed notes an error of a watch.
func (o *Observer) watchFailed(name string, w watched, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
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
