package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/autoscaler-agent/autoscaler-agent/examples/externalgrpc-server/protos"
)

// config is plugin.json.
type config struct {
	Listen              string
	Cert, Key, ClientCA string
	Groups              []*group
}

func main() {
	path := flag.String("config", "plugin.json", "configuration file")
	flag.Parse()
	log.Fatal(serve(*path))
}

func serve(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := &server{groups: map[string]*group{}}
	for _, g := range c.Groups {
		if g.ID == "" || len(g.Command) == 0 || len(g.Machine) == 0 {
			return fmt.Errorf("%s: group %q needs id, command and machine", path, g.ID)
		}
		g.pending = map[string]string{}
		s.groups[g.ID] = g
	}
	options, err := c.protection()
	if err != nil {
		return err
	}
	listen, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	g := grpc.NewServer(options...)
	protos.RegisterCloudProviderServer(g, s)
	log.Printf("listening on %s with %d groups", listen.Addr(), len(s.groups))
	return g.Serve(listen)
}

// protection makes the server ask for a certificate of the agent: whoever may call it
// may end machines. Without certificates it listens to this machine only.
func (c config) protection() ([]grpc.ServerOption, error) {
	if c.Cert == "" {
		host, _, err := net.SplitHostPort(c.Listen)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return nil, errors.Join(err, errors.New("without cert, key and clientCA listen on 127.0.0.1 only"))
		}
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM form", c.ClientCA)
	}
	return []grpc.ServerOption{grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}))}, nil
}
