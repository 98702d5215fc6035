// Command curl is the part of curl that worker user data uses, for hosts that have
// none: -f -s -S -L -o -X -H (also -H @-), --connect-timeout, --max-time, --retry,
// --retry-connrefused. It refuses any other option, so that a script cannot come to
// depend on one that is ignored here.
package main

import (
	"bufio"
	"context"
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
	req, err := http.NewRequestWithContext(ctx, o.method, o.url, nil)
	if err != nil {
		return nil, exitUsage, err
	}
	req.Header = o.header
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: o.connect}).DialContext}}
	resp, err := client.Do(req)
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
