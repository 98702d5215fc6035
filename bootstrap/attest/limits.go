package attest

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of the listener. A growth of a thousand machines that boot in the same second is
// answered whole; a machine that is refused for them tries again after ten seconds.
const (
	perSecond       = 50 // attestations of sources that did not attest in the last minute, all together ...
	burst           = 1000
	repeatPerSecond = 10 // ... and of all other sources together
	repeatBurst     = 100
	repeatWithin    = time.Minute

	sourcePerSecond = 5 // requests of one source, challenges included ...
	sourceBurst     = 20
	sourceDialing   = 10 // ... and new connections: each costs a TLS handshake
	sourceDialBurst = 40
	maxSources      = 4096

	maxInFlight       = 32 // questions to STS at a time ...
	maxRepeatInFlight = 8  // ... and of repeating sources
	maxConnections    = 256
	maxPerSource      = 16
	handshakeLimit    = 5 * time.Second // also for the head of a request, and for its body
	answerLimit       = 20 * time.Second
	idleLimit         = 10 * time.Second
	connectionLimit   = 45 * time.Second // handshake, idle time, a request and its answer: no honest machine needs longer
	maxHeader         = 4 << 10
)

// sourceOf is the source that an address is of: the address itself, of IPv6 its network of
// 64 bits, since one machine may have all of that.
func sourceOf(remote string) (netip.Prefix, bool) {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}, false
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	prefix, err := addr.Prefix(bits)
	return prefix, err == nil
}

// limits keep one source from using up what all may have.
type limits struct {
	first, repeat allowance

	mu      sync.Mutex
	sources map[netip.Prefix]*source
}

// source is what one source may still do.
type source struct {
	requests, connections *rate.Limiter
	attested              time.Time // when it last had an allowance for an attestation
}

// allowance is what attestations of many sources share.
type allowance struct {
	rate  *rate.Limiter
	slots chan struct{} // questions to STS under way
}

func newLimits() *limits {
	return &limits{sources: map[netip.Prefix]*source{},
		first:  allowance{rate.NewLimiter(perSecond, burst), make(chan struct{}, maxInFlight)},
		repeat: allowance{rate.NewLimiter(repeatPerSecond, repeatBurst), make(chan struct{}, maxRepeatInFlight)}}
}

// connection tells whether a source may open one more connection now.
func (l *limits) connection(of netip.Prefix, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source(of, now).connections.AllowN(now, 1)
}

// request tells whether the address may ask now.
func (l *limits) request(remote string, now time.Time) bool {
	of, ok := sourceOf(remote)
	if !ok {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source(of, now).requests.AllowN(now, 1)
}

// attestation is the allowance that an attestation of the address takes from. Sources that
// have just attested have one of their own: they cannot use up what first attempts need.
// nil: it is used up.
func (l *limits) attestation(remote string, now time.Time) *allowance {
	of, ok := sourceOf(remote)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s, from := l.source(of, now), &l.first
	if !s.attested.IsZero() && now.Sub(s.attested) < repeatWithin {
		from = &l.repeat
	}
	if !from.rate.AllowN(now, 1) {
		return nil
	}
	s.attested = now
	return from
}

// source finds or makes the state of a source. Where too many are known, one that has been silent
// for longest makes room: a new source is never turned away for the number of others.
// The search for it costs maxSources steps and happens only then.
func (l *limits) source(of netip.Prefix, now time.Time) *source {
	if s := l.sources[of]; s != nil {
		return s
	}
	if len(l.sources) >= maxSources {
		var silent netip.Prefix
		most := -1.0
		for p, s := range l.sources {
			if left := s.requests.TokensAt(now) + s.connections.TokensAt(now); left > most {
				silent, most = p, left
			}
		}
		delete(l.sources, silent)
	}
	s := &source{requests: rate.NewLimiter(sourcePerSecond, sourceBurst), connections: rate.NewLimiter(sourceDialing, sourceDialBurst)}
	l.sources[of] = s
	return s
}

// enter waits for a free question to STS; false: ctx ended first.
func (a *allowance) enter(ctx context.Context) bool {
	select {
	case a.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *allowance) leave() { <-a.slots }
