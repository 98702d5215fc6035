package attest

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// queued is a listener whose connections a test makes.
type queued struct{ next chan net.Conn }

func (q *queued) Accept() (net.Conn, error) {
	c, ok := <-q.next
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (*queued) Close() error   { return nil }
func (*queued) Addr() net.Addr { return &net.TCPAddr{} }

// fromAddress is one end of a pipe with a remote address.
type fromAddress struct {
	net.Conn
	remote net.Addr
	ended  atomic.Bool
}

func (f *fromAddress) RemoteAddr() net.Addr { return f.remote }
func (f *fromAddress) Close() error         { f.ended.Store(true); return f.Conn.Close() }

type listenerTest struct {
	t *testing.T
	q *queued
	l *fairListener
}

func newListenerTest(t *testing.T) *listenerTest {
	q := &queued{next: make(chan net.Conn)}
	d := &listenerTest{t, q, newFairListener(q, newLimits(), time.Now, func() {})}
	go func() {
		for {
			if _, err := d.l.Accept(); err != nil {
				return
			}
		}
	}()
	return d
}

// dial connects from an address; the listener has taken the connection, or closed it, at the return.
func (d *listenerTest) dial(address string) *fromAddress {
	near, far := net.Pipe()
	d.t.Cleanup(func() { _ = far.Close() })
	c := &fromAddress{Conn: near, remote: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 1))}
	d.q.next <- c
	synctest.Wait()
	return c
}

// end lets the longest life of all connections pass and closes the listener.
func (d *listenerTest) end() {
	time.Sleep(connectionLimit)
	close(d.q.next)
	synctest.Wait()
}

// counted is how many connections the listener counts, and of how many sources.
func (d *listenerTest) counted() (connections, sources int) {
	d.l.mu.Lock()
	defer d.l.mu.Unlock()
	return d.l.held, len(d.l.open)
}

func open(list []*fromAddress) (n int) {
	for _, c := range list {
		if !c.ended.Load() {
			n++
		}
	}
	return n
}

// TestOneSourceHoldsItsNumber: the oldest connection of a source makes room for its next one.
func TestOneSourceHoldsItsNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newListenerTest(t)
		var list []*fromAddress
		for range maxPerSource + 3 {
			list = append(list, d.dial("10.0.0.1"))
		}
		if n := open(list); n != maxPerSource {
			t.Errorf("one address holds %d connections, not %d", n, maxPerSource)
		}
		if !list[0].ended.Load() || !list[2].ended.Load() || list[3].ended.Load() {
			t.Error("it was not the oldest that were closed")
		}
		d.end()
		connections, sources := d.counted()
		if n := open(list); n != 0 || connections != 0 || sources != 0 {
			t.Errorf("%d connections outlive their limit, %d are counted", n, connections)
		}
	})
}

// TestANewSourceAlwaysFindsAPlace: however many connections others hold, a new source gets one,
// and keeps it while sources with more than one ask for more.
func TestANewSourceAlwaysFindsAPlace(t *testing.T) {
	for _, sources := range []int{1, 20, 50, 200, 400} {
		t.Run(fmt.Sprint(sources), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newListenerTest(t)
				flood := func() {
					for range 8 {
						for n := range sources {
							d.dial(netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}).String())
						}
					}
				}
				flood()
				honest := d.dial("10.0.0.9")
				if honest.ended.Load() {
					t.Fatal("a source that holds no connection got none")
				}
				if sources < maxConnections/2 {
					flood()
					if honest.ended.Load() {
						t.Error("it lost its only connection to sources that hold several")
					}
				}
				if n, _ := d.counted(); n > maxConnections {
					t.Errorf("%d connections are open", n)
				}
				d.end()
			})
		})
	}
}

// TestNewConnectionsAreBounded: a source that connects without end is not even shaken hands with.
func TestNewConnectionsAreBounded(t *testing.T) {
	l, now := newLimits(), time.Now()
	of, _ := sourceOf("[2001:db8::1]:1")
	other, _ := sourceOf("[2001:db8::ffff:2]:9")
	if of != other {
		t.Errorf("%s and %s are two sources", of, other)
	}
	admitted := 0
	for range 1000 {
		if l.connection(of, now) {
			admitted++
		}
	}
	if admitted != sourceDialBurst {
		t.Errorf("%d connections at once", admitted)
	}
	if next, _ := sourceOf("[2001:db8:0:1::1]:1"); !l.connection(next, now) {
		t.Error("another network is held back too")
	}
}

// TestRepeatsDoNotUseUpFirstAttempts: sources that attest again and again share an allowance of their own.
func TestRepeatsDoNotUseUpFirstAttempts(t *testing.T) {
	l, now := newLimits(), time.Now()
	for range 100 {
		for n := range 50 {
			l.attestation(fmt.Sprintf("10.0.0.%d:1", n), now)
		}
	}
	if from := l.attestation("10.0.0.200:1", now); from != &l.first {
		t.Error("a first attempt is not admitted beside fifty sources that repeat")
	}
	if from := l.attestation("10.0.0.7:1", now); from != nil {
		t.Error("repeats have no end")
	}
	if from := l.attestation("10.0.0.7:1", now.Add(repeatWithin+time.Second)); from != &l.first {
		t.Error("a source stays a repeating one for ever")
	}
}

// TestTheNumberOfSourcesIsBounded: a new source is served when the table is full.
func TestTheNumberOfSourcesIsBounded(t *testing.T) {
	l, now := newLimits(), time.Now()
	for n := range maxSources + 100 {
		if !l.request(fmt.Sprintf("10.%d.%d.%d:1", n>>16, n>>8&255, n&255), now) {
			t.Fatalf("source %d is refused", n)
		}
	}
	if len(l.sources) != maxSources {
		t.Errorf("%d sources are known", len(l.sources))
	}
}
