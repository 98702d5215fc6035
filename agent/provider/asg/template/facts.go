package template

import (
	"maps"
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/asg/awsapi"
)

// facts caches what does not change in AWS: instance types, images, launch
// template versions by number; and, for requirementsLife, the types that meet a
// set of requirements (AWS adds new types a few times a year).
type facts struct {
	mu           sync.Mutex
	types        map[string]typeFact
	images       map[string]imageFact
	versions     map[version]*launchTemplate
	current      map[ref]number // of references that are not fixed
	requirements map[string]matched
	refusals     map[string]refusal // types and images, for refusalLife
	aliases      map[string]alias   // of images, for aliasLife
	reads        int                // under way; see retain
}

// refusalLife is how long a type or an image that AWS refused to describe (no right, no
// such thing) is not asked for again: only an operator can change that.
const refusalLife = 5 * time.Minute

// refusal is the error of AWS, and how long it is believed.
type refusal struct {
	err   *provider.Error
	until time.Time
}

// refused is the error with which a type or an image was refused lately; nil: it was not.
func (f *facts) refused(name string, now time.Time) *provider.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r, ok := f.refusals[name]; ok && now.Before(r.until) {
		return r.err
	}
	return nil
}

// refuse remembers err if it is one that lasts.
func (f *facts) refuse(name string, err *provider.Error, now time.Time) {
	f.refuseFor(refusalLife, name, err, now)
}

// refuseFor remembers err for life if it is one that lasts.
func (f *facts) refuseFor(life time.Duration, name string, err *provider.Error, now time.Time) {
	if err.Kind != provider.Denied && err.Kind != provider.Invalid && err.Kind != provider.NotFound || err.Kind == provider.Denied && awsapi.BadLogin(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusals == nil {
		f.refusals = map[string]refusal{}
	}
	maps.DeleteFunc(f.refusals, func(_ string, r refusal) bool { return !now.Before(r.until) })
	f.refusals[name] = refusal{err, now.Add(life)}
}
