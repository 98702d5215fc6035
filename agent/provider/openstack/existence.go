package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

// atOnce is how many servers are read at the same time.
const atOnce = 8

// Servers asks one Nova for servers by their UUIDs, in lower case and with dashes. Nova
// answers 404 for the servers of other projects, too: that the project is the right one
// is the caller's to prove. A 404 that is not in Nova's own words (a proxy's, a wrong
// endpoint's) says nothing.
func Servers(ctx context.Context, nova *gophercloud.ServiceClient, uuids []string) (map[string]cluster.Testimony, error) {
	said, errs := make([]cluster.Testimony, len(uuids)), make([]error, len(uuids))
	turn := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i, uuid := range uuids {
		turn <- struct{}{}
		wait.Go(func() {
			defer func() { <-turn }()
			said[i], errs[i] = serverExistence(ctx, nova, uuid)
		})
	}
	wait.Wait()
	out := make(map[string]cluster.Testimony, len(uuids))
	for i, uuid := range uuids {
		out[uuid] = said[i]
	}
	return out, errors.Join(errs...)
}

func serverExistence(ctx context.Context, nova *gophercloud.ServiceClient, uuid string) (cluster.Testimony, error) {
	var doc struct {
		Server struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"server"`
	}
	_, err := nova.Get(ctx, nova.ServiceURL("servers", uuid), &doc, &gophercloud.RequestOpts{OkCodes: []int{200}})
	var answer gophercloud.ErrUnexpectedResponseCode
	switch {
	case errors.As(err, &answer) && answer.Actual == http.StatusNotFound && novaSays(answer.Body):
		return cluster.Testimony{Existence: cluster.InstanceNotFound, Why: "Nova: 404"}, nil
	case err != nil:
		e := Classify("ask for instances", "", err)
		return cluster.Testimony{Why: e.Error()}, e
	case !strings.EqualFold(doc.Server.ID, uuid) || doc.Server.Status == "":
		return cluster.Testimony{Why: "the answer of Nova is empty or cut short"}, nil
	case doc.Server.Status == "DELETED":
		return cluster.Testimony{Existence: cluster.InstanceTerminated, Why: "Nova: DELETED"}, nil
	}
	return cluster.Testimony{Existence: cluster.InstanceExists, Why: "Nova: " + doc.Server.Status}, nil
}

// novaSays reports whether a body is Nova's own 404: {"itemNotFound": {...}}.
func novaSays(body []byte) bool {
	var doc map[string]json.RawMessage
	return json.Unmarshal(body, &doc) == nil && doc["itemNotFound"] != nil
}

// AskSite asks one Nova for servers, given by provider ID and UUID; service finds it.
func AskSite(ctx context.Context, servers map[cluster.InstanceID]string, service func(context.Context) (*gophercloud.ServiceClient, error)) (map[cluster.InstanceID]cluster.Testimony, error) {
	ids := make([]cluster.InstanceID, 0, len(servers))
	var uuids []string
	for id, uuid := range servers {
		ids, uuids = append(ids, id), append(uuids, uuid)
	}
	if len(ids) == 0 {
		return map[cluster.InstanceID]cluster.Testimony{}, nil
	}
	nova, err := service(ctx)
	if err != nil {
		e := Classify("ask for instances", "", err)
		return provider.Unknown(e.Error(), ids...), e
	}
	said, err := Servers(ctx, nova, uuids)
	out := make(map[cluster.InstanceID]cluster.Testimony, len(ids))
	for id, uuid := range servers {
		out[id] = said[uuid]
	}
	return out, err
}
