// Command curl is the part of curl that worker user data uses, for hosts that have
// none: -f -s -S -L -o -X -H (also -H @-), -w '\n%{http_code}', --data-binary @-, --cacert,
// --connect-to ::host:port, --noproxy '*', --connect-timeout, --max-time, --retry,
// --retry-connrefused. It refuses any other option, so that a script cannot come to
// depend on one that is ignored here.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// The exit codes are curl's own.
const (
	exitUsage   = 2
	exitConnect = 7
	exitHTTP    = 22
	exitWrite   = 23
	exitTimeout = 28
)

type options struct {
	method, url, output     string
	header                  http.Header
	fail, silent, showError bool
	connect, total          time.Duration
	retries                 int
	refused                 bool
	body                    io.Reader
	writeCode               bool
	status                  int    // of the last answer
	address                 string // every connection goes there
	roots                   *x509.CertPool
	direct                  bool // no proxy
}

func main() {
	o, err := parse(os.Args[1:], os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		os.Exit(exitUsage)
	}
	body, code, err := o.fetch()
	for wait := time.Second; err != nil && o.retries > 0 && o.again(code); o.retries-- {
		time.Sleep(wait)
		wait *= 2
		body, code, err = o.fetch()
	}
	if err != nil {
		if !o.silent || o.showError {
			fmt.Fprintln(os.Stderr, "curl:", err)
		}
		os.Exit(code)
	}
	if err := o.write(body); err != nil {
		fmt.Fprintln(os.Stderr, "curl:", err)
		os.Exit(exitWrite)
	}
}

func (o *options) again(code int) bool {
	return code == exitTimeout || code == exitConnect && o.refused
}

func (o *options) write(body []byte) error {
	if o.writeCode {
		body = fmt.Appendf(body, "\n%d", o.status)
	}
	if o.output == "" {
		_, err := os.Stdout.Write(body)
		return err
	}
	return os.WriteFile(o.output, body, 0o644)
}

func (o *options) fetch() (body []byte, code int, err error) {
	ctx := context.Background()
	if o.total > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.total)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, o.method, o.url, o.body)
	if err != nil {
		return nil, exitUsage, err
	}
	req.Header = o.header
	resp, err := (&http.Client{Transport: o.transport()}).Do(req)
	if err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil, exitTimeout, err
		}
		return nil, exitConnect, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		return nil, exitTimeout, err
	}
	o.status = resp.StatusCode
	switch s := resp.StatusCode; {
	case s == 408 || s == 429 || s == 500 || s == 502 || s == 503 || s == 504:
		code = exitTimeout // curl's --retry counts these as transient
	case s >= 400:
		code = exitHTTP
	}
	if code != 0 && o.fail {
		return nil, code, fmt.Errorf("(22) The requested URL returned error: %d", resp.StatusCode)
	}
	return body, 0, nil
}

func (o *options) transport() *http.Transport {
	dial := (&net.Dialer{Timeout: o.connect}).DialContext
	t := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: o.roots}}
	if o.address != "" {
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, o.address) }
	}
	if !o.direct {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}

func parse(args []string, stdin io.Reader) (*options, error) {
	o := &options{method: http.MethodGet, header: http.Header{}, connect: 5 * time.Minute}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		value := func() (string, error) {
			if i++; i >= len(args) {
				return "", fmt.Errorf("option %s: requires parameter", arg)
			}
			return args[i], nil
		}
		var err error
		switch {
		case arg == "-H":
			var v string
			if v, err = value(); err == nil {
				err = o.addHeader(v, stdin)
			}
		case arg == "-X":
			o.method, err = value()
		case arg == "-o":
			o.output, err = value()
		case arg == "--connect-timeout":
			o.connect, err = seconds(value())
		case arg == "--max-time":
			o.total, err = seconds(value())
		case arg == "--retry":
			var v string
			if v, err = value(); err == nil {
				o.retries, err = strconv.Atoi(v)
			}
		case arg == "--retry-connrefused":
			o.refused = true
		case arg == "--noproxy" || arg == "--cacert" || arg == "--connect-to" || arg == "--data-binary" || arg == "-w":
			var v string
			if v, err = value(); err == nil {
				err = o.long(arg, v, stdin)
			}
		case strings.HasPrefix(arg, "-"):
			err = o.short(arg)
		default:
			o.url = arg
		}
		if err != nil {
			return nil, err
		}
	}
	if o.url == "" {
		return nil, errors.New("no URL specified")
	}
	return o, nil
}

// long takes the options of which only the user data's own values are known.
func (o *options) long(arg, v string, stdin io.Reader) error {
	known := true
	switch arg {
	case "--noproxy":
		o.direct, known = true, v == "*"
	case "--data-binary":
		o.method, o.body, known = http.MethodPost, stdin, v == "@-"
	case "-w":
		o.writeCode, known = true, v == `\n%{http_code}`
	case "--connect-to":
		o.address, known = strings.CutPrefix(v, "::")
	case "--cacert":
		text, err := os.ReadFile(v)
		if err != nil {
			return err
		}
		o.roots = x509.NewCertPool()
		known = o.roots.AppendCertsFromPEM(text)
	}
	if !known {
		return fmt.Errorf("option %s: value %q is not supported", arg, v)
	}
	return nil
}

func (o *options) short(arg string) error {
	for _, c := range arg[1:] {
		switch c {
		case 'f':
			o.fail = true
		case 's':
			o.silent = true
		case 'S':
			o.showError = true
		case 'L': // net/http follows redirects
		default:
			return fmt.Errorf("option %s: is unknown", arg)
		}
	}
	return nil
}

func seconds(v string, err error) (time.Duration, error) {
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(v, 64)
	return time.Duration(n * float64(time.Second)), err
}

// addHeader takes "Name: value", or "@-" for such lines on standard input.
func (o *options) addHeader(v string, stdin io.Reader) error {
	lines := []string{v}
	if v == "@-" {
		lines = nil
		for s := bufio.NewScanner(stdin); s.Scan(); {
			lines = append(lines, s.Text())
		}
	}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("header %q: no colon", name)
		}
		o.header.Add(name, strings.TrimSpace(value))
	}
	return nil
}
