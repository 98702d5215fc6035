package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// part is one long-running program of the control plane. Its arguments and ports
// stay the same over its lives.
type part struct {
	name string
	file string // program
	args []string
	log  string // file
	url  string // health

	patience time.Duration
	note     func(format string, args ...any)

	mu       sync.Mutex
	child    *child
	paused   bool
	expected bool // the end of child was asked for
	watchers sync.WaitGroup
	http     *http.Client
}

// start runs the program; it does not wait until it serves.
func (p *part) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child != nil && p.child.running() {
		return fmt.Errorf("start %s: conflict: it runs already (pid %d)", p.name, p.child.pid)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.file, p.args...)
	cmd.Dir = filepath.Dir(p.log)
	cmd.Stdout, cmd.Stderr = log, log
	c, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.child, p.paused, p.expected = c, false, false
	p.watchers.Go(func() { p.watch(c) })
	return nil
}

// watch says when a part ends that nobody asked to end.
func (p *part) watch(c *child) {
	<-c.done
	p.mu.Lock()
	surprise := p.child == c && !p.expected
	p.mu.Unlock()
	if surprise {
		p.note("%s ended: %v", p.name, c.err)
	}
}

// living is the running child, or an error that names what was wanted of it.
func (p *part) living(verb string) (*child, error) {
	if p.child == nil || !p.child.running() {
		return nil, fmt.Errorf("%s %s: it does not run", verb, p.name)
	}
	return p.child, nil
}

// end sends sig and waits until the process is reaped; after grace, or when ctx
// ends, it is killed. A part that does not run is no error: it has ended.
func (p *part) end(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	p.mu.Lock()
	c, err := p.living("stop")
	if err != nil {
		p.mu.Unlock()
		return nil
	}
	p.expected = true
	sent := c.cmd.Process.Signal(sig)
	if p.paused {
		// A stopped process keeps every signal but SIGKILL for later.
		_ = c.cmd.Process.Signal(syscall.SIGCONT)
		p.paused = false
	}
	p.mu.Unlock()
	if sent != nil && !errors.Is(sent, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, sent)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	<-c.done
	return nil
}

func (p *part) pause(paused bool) error {
	verb, sig := "resume", syscall.SIGCONT
	if paused {
		verb, sig = "pause", syscall.SIGSTOP
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.living(verb)
	if err != nil {
		return err
	}
	if err := c.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%s %s: %w", verb, p.name, err)
	}
	for paused && c.running() && !stopped(c.pid) { // a busy machine takes its time
		time.Sleep(time.Millisecond)
	}
	p.paused = paused
	return nil
}

// stopped tells whether SIGSTOP has reached every thread of a process: until a thread runs the
// next time it may still answer.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		state := text[bytes.LastIndexByte(text, ')')+1:] // proc_pid_stat(5): the name ends with the last bracket
		if err == nil && !bytes.HasPrefix(state, []byte(" T")) {
			return false
		}
	}
	return true
}

func (p *part) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child == nil || !p.child.running() {
		return 0
	}
	return p.child.pid
}

func (p *part) state() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.child == nil:
		return "not started"
	case !p.child.running():
		return "stopped"
	case p.paused:
		return "paused"
	}
	return "running"
}

// logged is the whole log so far.
func (p *part) logged() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return ""
	}
	return string(text)
}

// healthy asks the part's own health endpoint once.
func (p *part) healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", p.url, resp.Status, tail(string(body), 10))
	}
	return nil
}

// ready waits until the part is healthy. It gives up when the process ends, since
// these programs do not come back on their own.
func (p *part) ready(ctx context.Context) error {
	p.mu.Lock()
	c := p.child
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	// A process that ended must not be waited for through a question that hangs,
	// for example because another program has its port.
	asking, hush := context.WithCancel(ctx)
	defer hush()
	go func() {
		select {
		case <-c.done:
			hush()
		case <-asking.Done():
		}
	}()
	var last error
	for {
		if last = p.healthy(asking); last == nil {
			return nil
		}
		select {
		case <-c.done:
			return p.blame(fmt.Errorf("%s ended before it was ready: %w", p.name, endOf(c)))
		case <-ctx.Done():
			return p.blame(fmt.Errorf("%s did not get ready: %w: %w", p.name, ctx.Err(), last))
		case <-time.After(30 * time.Millisecond):
		}
	}
}

func endOf(c *child) error {
	if c.err == nil {
		return errors.New("exit status 0")
	}
	return c.err
}

// blame adds what the part said last.
func (p *part) blame(err error) error {
	return fmt.Errorf("%w\nlast lines of %s:\n%s", err, p.name, tail(p.logged(), 25))
}

// tlsClient trusts only ca, so that another control plane that got a port of ours
// is never taken for our part.
func tlsClient(caFile, certFile, keyFile string) (*http.Client, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read CA: %s holds no certificate", caFile)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read client certificate: %w", err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair}}
	// A fresh connection per question: a paused part must not be asked over the
	// connection that its former life left open. The proxy is left out on purpose.
	return &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}, nil
}

func loopback(port int) string { return "https://127.0.0.1:" + strconv.Itoa(port) }
