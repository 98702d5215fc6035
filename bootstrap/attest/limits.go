package attest

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of the listener. A growth of a thousand machines that boot in the same second is
// answered whole; a machine that is refused for them tries again after ten seconds.
const (
	perSecond       = 50 // attestations of all machines together ...
	burst           = 1000
	sourcePerSecond = 5 // ... and requests of one address, challenges included
	sourceBurst     = 20
	maxSources      = 4096
	maxInFlight     = 32 // questions to STS at a time
	maxConnections  = 256
	handshakeLimit  = 5 * time.Second // also for the head of a request, and for its body
	answerLimit     = 20 * time.Second
	idleLimit       = 10 * time.Second
	maxHeader       = 4 << 10
)

// limits keep one source from using up what all may have.
type limits struct {
	all *rate.Limiter

	mu      sync.Mutex
	sources map[netip.Prefix]*rate.Limiter
}

func newLimits() *limits {
	return &limits{all: rate.NewLimiter(perSecond, burst), sources: map[netip.Prefix]*rate.Limiter{}}
}

// source tells whether the address may ask now. An IPv6 network of a subnet is one source.
func (l *limits) source(remote string, now time.Time) bool {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	addr, bits := at.Addr().Unmap(), 32
	if addr.Is6() {
		bits = 64
	}
	prefix, err := addr.WithZone("").Prefix(bits)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.sources[prefix]
	if of == nil {
		if len(l.sources) >= maxSources {
			for p, s := range l.sources {
				if s.TokensAt(now) >= sourceBurst { // it has been silent: nothing is lost by forgetting it
					delete(l.sources, p)
				}
			}
			if len(l.sources) >= maxSources {
				return false
			}
		}
		of = rate.NewLimiter(sourcePerSecond, sourceBurst)
		l.sources[prefix] = of
	}
	return of.AllowN(now, 1)
}
