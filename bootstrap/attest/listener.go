package attest

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// fairListener accepts connections of many sources so that no source keeps another one out:
// a source that has its number loses its oldest connection to its own next one, and where all
// places are taken, the source with the most connections loses its oldest. A connection has a longest
// life, so that slow senders keep no place. It speaks no TLS: a connection that is refused costs no handshake.
type fairListener struct {
	net.Listener
	limits  *limits
	now     func() time.Time
	refused func() // is told of each connection that loses its place or gets none

	mu   sync.Mutex
	open map[netip.Prefix][]*place // the oldest first
	held int
}

// place is a connection that is counted.
type place struct {
	net.Conn
	listener *fairListener
	of       netip.Prefix
	since    time.Time
	end      *time.Timer
	once     sync.Once
}

func newFairListener(l net.Listener, limits *limits, now func() time.Time, refused func()) *fairListener {
	return &fairListener{Listener: l, limits: limits, now: now, refused: refused, open: map[netip.Prefix][]*place{}}
}

func (l *fairListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		of, ok := sourceOf(c.RemoteAddr().String())
		if !ok || !l.limits.connection(of, l.now()) {
			_ = c.Close()
			l.refused()
			continue
		}
		p, loses := l.enter(c, of)
		if loses != nil {
			_ = loses.Close()
			l.refused()
		}
		return p, nil
	}
}

// enter counts a connection and names the one that loses its place for it; nil: none.
func (l *fairListener) enter(c net.Conn, of netip.Prefix) (p, loses *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.open[of]) >= maxPerSource:
		loses = l.open[of][0]
	case l.held >= maxConnections:
		loses = l.oldestOfMost(of)
	}
	if loses != nil {
		l.leave(loses)
	}
	p = &place{Conn: c, listener: l, of: of, since: l.now()}
	p.end = time.AfterFunc(connectionLimit, func() { _ = p.Close() })
	l.open[of] = append(l.open[of], p)
	l.held++
	return p, loses
}

// oldestOfMost is the oldest connection of the source that has the most, the new one of newcomer
// counted. It looks at each source once, of which there are at most maxConnections.
func (l *fairListener) oldestOfMost(newcomer netip.Prefix) (oldest *place) {
	most := 0
	for of, places := range l.open {
		n := len(places)
		if of == newcomer {
			n++
		}
		if n > most || n == most && places[0].since.Before(oldest.since) {
			most, oldest = n, places[0]
		}
	}
	return oldest
}

// leave takes a connection out of the count; the lock is held.
func (l *fairListener) leave(p *place) {
	places := l.open[p.of]
	at := slices.Index(places, p)
	if at < 0 {
		return
	}
	l.held--
	if len(places) == 1 {
		delete(l.open, p.of)
		return
	}
	l.open[p.of] = slices.Delete(places, at, at+1)
}

func (p *place) Close() error {
	p.once.Do(func() {
		p.listener.mu.Lock()
		p.end.Stop()
		p.listener.leave(p)
		p.listener.mu.Unlock()
	})
	return p.Conn.Close()
}
