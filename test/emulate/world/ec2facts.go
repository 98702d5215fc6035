package world

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/capi"
)

// ec2Facts is EC2's metadata service of one machine that Cluster API's AWS provider would start, as far as user data reads it:
// a session token, and facts for its holder.
type ec2Facts struct {
	server   *http.Server
	endpoint string
	token    string
	facts    map[string]string // by path below /latest/meta-data
}

func serveEC2Facts(i capi.Instance) (*ec2Facts, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("metadata of machine %s: %w", i.Machine, err)
	}
	f := &ec2Facts{endpoint: "http://" + listener.Addr().String(), token: rand.Text(), facts: map[string]string{
		"local-hostname": i.Machine, "instance-id": i.Machine, "instance-type": capiType,
		"placement/availability-zone": capiZone, "placement/region": "region-a",
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") == "" {
			http.Error(w, "400 - Bad Request", http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, f.token) // a client that is gone asks again
	})
	mux.HandleFunc("GET /latest/meta-data/{fact...}", func(w http.ResponseWriter, r *http.Request) {
		fact, ok := f.facts[r.PathValue("fact")]
		switch {
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != f.token:
			http.Error(w, "401 - Unauthorized", http.StatusUnauthorized)
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = io.WriteString(w, fact)
		}
	})
	f.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = f.server.Serve(listener) }() // ends with Close
	return f, nil
}
