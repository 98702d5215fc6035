package attest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
)

// flood is an attack on the listener: connections from addresses of its own, each kept for as long
// as the listener lets it.
type flood struct {
	r                      *rig
	answered, refused, end atomic.Int64 // requests answered with 200, with another status, connections that ended
	group                  sync.WaitGroup
}

// start opens connections from an address and keeps them open with what use does. A connection that ends is opened again.
func (f *flood) start(ctx context.Context, from net.IP, connections int, protocol string, use func(context.Context, *tls.Conn)) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	config := &tls.Config{RootCAs: f.r.ca, ServerName: attest.ServerName, MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}}
	for range connections {
		f.group.Go(func() {
			for ctx.Err() == nil {
				attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
				c, err := (&tls.Dialer{NetDialer: &dialer, Config: config}).DialContext(attempt, "tcp", f.r.address)
				cancel()
				if err == nil {
					stop := context.AfterFunc(ctx, func() { _ = c.Close() })
					use(ctx, c.(*tls.Conn))
					stop()
					_ = c.Close()
				}
				f.end.Add(1)
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
		})
	}
}

// ask asks for a challenge every so often, on one connection of HTTP/1.1 or HTTP/2.
func (f *flood) ask(every time.Duration, http2 bool) func(context.Context, *tls.Conn) {
	return func(ctx context.Context, c *tls.Conn) {
		once := false
		transport := &http.Transport{ForceAttemptHTTP2: http2, TLSClientConfig: &tls.Config{}, DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			if once {
				return nil, io.EOF
			}
			once = true
			return c, nil
		}}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
		for ctx.Err() == nil {
			res, err := client.Get("https://" + f.r.address + "/v1/challenge")
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, res.Body) // its text says nothing to an attacker
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				f.answered.Add(1)
			} else {
				f.refused.Add(1)
			}
			select {
			case <-ctx.Done():
			case <-time.After(every):
			}
		}
	}
}

// crawl sends the head of a request byte by byte and never ends it.
func (f *flood) crawl(ctx context.Context, c *tls.Conn) {
	text := "GET /v1/challenge HTTP/1.1\r\nHost: x\r\nX-Slow: "
	for n := 0; ctx.Err() == nil; n++ {
		if _, err := c.Write([]byte{text[min(n, len(text)-1)]}); err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// TestFlood: an honest machine joins within two tries of twenty seconds, the time that its user data gives a try, while
// other addresses hold as many connections as they get. AUTOSCALER_TEST_FLOOD_MACHINES is how many machines join in each.
func TestFlood(t *testing.T) {
	machines := 5
	if n, err := strconv.Atoi(os.Getenv("AUTOSCALER_TEST_FLOOD_MACHINES")); err == nil {
		machines = n
	}
	one := net.IPv4(127, 9, 0, 1)
	many := func(n int) net.IP { return net.IPv4(127, 9, 1, byte(n)) }
	for _, row := range []struct {
		name  string
		start func(context.Context, *flood)
	}{
		{"one address, 300 connections, HTTP/1.1", func(ctx context.Context, f *flood) {
			f.start(ctx, one, 300, "http/1.1", f.ask(8*time.Second, false))
		}},
		{"one address, 300 connections, HTTP/2", func(ctx context.Context, f *flood) {
			f.start(ctx, one, 300, "h2", f.ask(8*time.Second, true))
		}},
		{"one address, 300 slow senders", func(ctx context.Context, f *flood) { f.start(ctx, one, 300, "http/1.1", f.crawl) }},
		{"one address without pause", func(ctx context.Context, f *flood) {
			f.start(ctx, one, 50, "http/1.1", f.ask(0, false))
		}},
		{"50 addresses, 300 connections", func(ctx context.Context, f *flood) {
			for n := range 50 {
				f.start(ctx, many(n), 6, "http/1.1", f.ask(8*time.Second, false))
			}
		}},
		{"50 addresses, 600 slow senders", func(ctx context.Context, f *flood) {
			for n := range 50 {
				f.start(ctx, many(n), 12, "http/1.1", f.crawl)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, machines, nil)
			ctx, cancel := context.WithCancel(t.Context())
			f := &flood{r: r}
			row.start(ctx, f)
			defer f.group.Wait()
			defer cancel()
			time.Sleep(3 * time.Second) // the attack has taken what it gets
			for n, in := range r.instances("workers") {
				if err := r.joinWithin(n, in.ID, 2); err != nil {
					t.Errorf("machine %d: %v", n, err)
				}
			}
			t.Logf("%d requests answered, %d refused, %d connections ended", f.answered.Load(), f.refused.Load(), f.end.Load())
		})
	}
}

// joinWithin plays an honest machine that tries so many times.
func (r *rig) joinWithin(n int, id string, tries int) (err error) {
	for range tries {
		c := r.machine(n)
		var nonce, answer string
		var status int
		if nonce, err = r.tryNonce(c); err != nil {
			continue
		}
		if status, answer = r.post(c, r.signing(r.credentials(id), nonce).sign(r.t)); status == http.StatusOK {
			return nil
		}
		err = fmt.Errorf("%d %s", status, answer)
	}
	return err
}
