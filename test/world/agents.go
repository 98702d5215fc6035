package world

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/wire"
)

// Agent is the whole agent of one leader: agent.Run as the command starts it.
type Agent struct {
	world *World
	name  string
	dir   string // of its files
	life  int    // starts so far

	files map[string]os.FileInfo // as last seen

	wire   *wire.Wire // of this life
	stop   context.CancelFunc
	done   chan struct{} // closed when this life has ended
	killed bool
}

// prepare writes the files that an installation has.
func (a *Agent) prepare() error {
	ca := base64.StdEncoding.EncodeToString(a.world.ca.pem)
	return writeFile(filepath.Join(a.dir, "kubeconfig"), `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://`+apiHost+`", certificate-authority-data: "`+ca+`"}}]
users: [{name: u, user: {token: "`+a.name+`"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`)
}

func (a *Agent) stateDir() string { return filepath.Join(a.dir, fmt.Sprint("state-", a.life)) }

// Start begins a life with the files of the last one.
func (a *Agent) Start() {
	w := a.world
	if err := os.MkdirAll(a.stateDir(), 0o700); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	life, done := a.life, make(chan struct{})
	a.wire = w.wireOf(a, func(r *http.Request) wire.Fault { return w.faults.of(a, life, r) })
	a.stop, a.done, a.killed = stop, done, false
	cfg := w.Env
	cfg.NodeName, cfg.Kubeconfig, cfg.StateDir = a.name, filepath.Join(a.dir, "kubeconfig"), a.stateDir()
	cfg.Bootstrap.File = filepath.Join(a.dir, "worker.env")
	cfg.Transport, cfg.AWS.Transport, cfg.Dial = a.wire, a.wire, w.dial
	cfg.EnvFile = filepath.Join(a.dir, "agent.env")
	lines := logrus.New()
	lines.SetOutput(io.Discard)
	lines.AddHook(journal{a, life})
	if w.Verbose {
		lines.SetLevel(logrus.DebugLevel)
	}
	w.Tell("%s starts (life %d)", a.name, life)
	go func() {
		defer close(done)
		err := agent.Run(ctx, cfg, lines)
		if err != nil && ctx.Err() == nil {
			w.Tell("%s ended: %v", a.name, err)
			w.after(5*time.Second, func() { a.again(life) }) // Restart=always
		}
	}()
}

// restart stops an agent as systemctl does, and starts it again.
func (a *Agent) restart(after time.Duration) {
	if a.stop == nil || a.killed {
		return
	}
	w, life, was := a.world, a.life, a.stateDir()
	w.Tell("%s is stopped", a.name)
	w.watch.trouble(after)
	a.killed = true // what it says from now on binds it no more
	a.stop()
	w.after(after, func() {
		a.wire.Cut()
		a.life++
		_ = copyDir(was, a.stateDir())
		if a.life == life+1 {
			a.Start()
		}
	})
}

// again starts an agent that ended by itself.
func (a *Agent) again(life int) {
	if a.life == life && !a.killed {
		a.life++
		_ = os.Rename(filepath.Join(a.dir, fmt.Sprint("state-", life)), a.stateDir())
		a.Start()
	}
}

// Kill ends a life as SIGKILL does: nothing of it reaches anybody any more, and its files stay as they are at this
// moment. What the process does before its goroutines have noticed, it does in a directory that nobody reads again.
func (a *Agent) Kill() {
	if a.stop == nil || a.killed {
		return
	}
	a.killed = true
	a.wire.Cut()
	was := a.stateDir()
	a.life++
	for tries := 0; ; tries++ { // a file of it may just be renamed
		if err := copyDir(was, a.stateDir()); err == nil {
			break
		} else if tries > 20 {
			panic(err)
		}
	}
	a.tear(was)
	a.world.Tell("%s is killed", a.name)
	a.stop()
}

// lookAtFiles remembers the files of an agent.
func (a *Agent) lookAtFiles() {
	a.files = map[string]os.FileInfo{}
	list, _ := os.ReadDir(a.stateDir())
	for _, f := range list {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
			a.files[f.Name()] = info
		}
	}
}

// tear leaves half of each file that was written in place since the last look: a power cut finds it so. One that was
// replaced by another file is whole. (In a bubble a write takes no time, so that no kill comes into one.)
func (a *Agent) tear(was string) {
	for name, before := range a.files {
		now, err := os.Stat(filepath.Join(was, name))
		if err != nil || !os.SameFile(before, now) || now.ModTime().Equal(before.ModTime()) {
			continue
		}
		a.world.Tell("%s: its file %s was written in place, and half of it is there", a.name, name)
		_ = os.Truncate(filepath.Join(a.stateDir(), name), now.Size()/2)
	}
}

func (a *Agent) wait() {
	if a.done != nil {
		<-a.done
	}
}

// copyDir copies the files of a directory.
func copyDir(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

// journal tells the story what an agent logs.
type journal struct {
	a    *Agent
	life int
}

func (journal) Levels() []logrus.Level { return logrus.AllLevels }

func (j journal) Fire(e *logrus.Entry) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s: %s", j.a.name, e.Data["service"], e.Message)
	for _, key := range []string{"group", "node", "instance", "pod", "csr", "rule", "kind", "why", "step", "error"} {
		if v, ok := e.Data[key]; ok {
			fmt.Fprintf(&out, " %s=%v", key, v)
		}
	}
	text := out.String()
	if j.life == j.a.life && !j.a.killed {
		j.a.world.watch.said(j.a, e)
	}
	if e.Level <= logrus.WarnLevel {
		text = strings.ToUpper(e.Level.String()) + " " + text
		j.a.world.watch.logged(j.a, text)
	}
	j.a.world.Tell("%s", text)
	return nil
}

// dial opens what is no HTTP: the handshake in which the agent reads the API server's certificate.
func (w *World) dial(ctx context.Context, _, address string) (net.Conn, error) {
	if address != apiHost {
		return nil, fmt.Errorf("dial %s: nobody is there", address)
	}
	near, far := net.Pipe()
	l := &oneConn{Conn: tls.Server(far, &tls.Config{Certificates: []tls.Certificate{w.ca.serving}, MinVersion: tls.VersionTLS12}), world: w, closed: make(chan struct{})}
	w.fleet.mu.Lock()
	w.fleet.conns[l] = true
	w.fleet.mu.Unlock()
	server := &http.Server{Handler: w.API, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	return near, ctx.Err()
}

// oneConn is a listener with one connection.
type oneConn struct {
	net.Conn
	world    *World
	accepted bool
	once     sync.Once
	closed   chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.accepted {
		l.accepted = true
		return l, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Addr() net.Addr { return l.LocalAddr() }

// Close implements net.Listener and net.Conn.
func (l *oneConn) Close() error {
	l.once.Do(func() {
		l.world.fleet.mu.Lock()
		delete(l.world.fleet.conns, l)
		l.world.fleet.mu.Unlock()
		close(l.closed)
	})
	return l.Conn.Close()
}
