package magnum

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/containerinfra/v1/clusters"
	"github.com/gophercloud/gophercloud/v2/openstack/containerinfra/v1/nodegroups"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// Microversions of Magnum: node groups came with 1.9 (Train), zero nodes with 1.10.
const (
	wantVersion  = "1.10"
	leastMinor   = 9
	toZeroMinor  = 10
	oldMagnum    = "Magnum must be of release Train (2019) or later: its API has to offer microversion 1.9 for node groups, and 1.10 to go down to zero nodes"
	inProgress   = "_IN_PROGRESS"
	failedSuffix = "_FAILED"
)

// nodeGroup and magnumCluster are Magnum's own objects.
type (
	nodeGroup     = nodegroups.NodeGroup
	magnumCluster = clusters.Cluster
)

// api returns a client for Magnum with the microversion that both sides know.
func (p *Provider) api(ctx context.Context) (*gophercloud.ServiceClient, error) {
	api, err := p.session.Service(ctx, "container-infra", "")
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if api.Microversion = p.version; p.version == "" {
		api.Microversion = wantVersion
	}
	return api, nil
}

// cluster reads the cluster. It is the first request of everything that is done, so
// it is here that the microversion is agreed on.
func (p *Provider) cluster(ctx context.Context, api *gophercloud.ServiceClient, op string) (*magnumCluster, error) {
	c, err := p.get(ctx, api)
	if gophercloud.ResponseCodeIs(err, http.StatusNotAcceptable) {
		version, why := agree(err)
		if why != "" {
			return nil, &provider.Error{Op: op, Kind: provider.Invalid, Err: errors.New(why), Remedy: oldMagnum}
		}
		api.Microversion = version
		if c, err = p.get(ctx, api); err == nil {
			p.mu.Lock()
			p.version = version
			p.mu.Unlock()
		}
	}
	if err == nil {
		return c, nil
	}
	e := openstack.Classify(op, "", err)
	switch e.Kind {
	case provider.NotFound:
		e.Remedy = "check AUTOSCALER_MAGNUM_CLUSTER, AUTOSCALER_OPENSTACK_REGION and the project of the credentials against `openstack coe cluster list`"
	case provider.Conflict:
		e.Kind, e.Remedy = provider.Invalid, "several clusters have this name: write the cluster's UUID to AUTOSCALER_MAGNUM_CLUSTER"
	}
	return nil, e
}

func (p *Provider) get(ctx context.Context, api *gophercloud.ServiceClient) (*magnumCluster, error) {
	c, err := clusters.Get(ctx, api, url.PathEscape(p.cfg.Cluster)).Extract()
	if err == nil && (c == nil || c.UUID == "") {
		return nil, errHollow
	}
	return c, err
}

// rangeForm finds the highest microversion in a 406's body: Magnum writes "max_version" in
// its error, and middleware the range in words.
var rangeForm = regexp.MustCompile(`(?:\[\s*[0-9]+\.[0-9]+\s*,\s*|"max_version":\s*")([0-9]+\.[0-9]+)`)

// agree chooses a microversion from the range that a 406 names in its headers or body.
func agree(err error) (version, why string) {
	var answer gophercloud.ErrUnexpectedResponseCode
	errors.As(err, &answer)
	_, offered, _ := strings.Cut(answer.ResponseHeader.Get("OpenStack-API-Maximum-Version"), " ")
	if m := rangeForm.FindStringSubmatch(string(answer.Body)); offered == "" && m != nil {
		offered = m[1]
	}
	if offered == "" {
		return "", "Magnum does not accept microversion " + wantVersion + " and does not say which it does"
	}
	if n := minor(offered); n < leastMinor {
		return "", fmt.Sprintf("Magnum's API offers microversion %s at most, and node groups need 1.%d", offered, leastMinor)
	}
	if minor(offered) > minor(wantVersion) {
		offered = wantVersion
	}
	return offered, ""
}

// minor is the second number of a microversion, -1 where there is none. All of
// Magnum's are 1.x.
func minor(version string) int {
	_, text, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// resize asks Magnum for a node count, and to get there without the named nodes. An
// answer means that Magnum has accepted it, and no more.
func (p *Provider) resize(ctx context.Context, api *gophercloud.ServiceClient, c *magnumCluster, g *nodeGroup, count int, remove []string) error {
	if slices.Contains(remove, "") {
		return errors.New("an empty name would remove an arbitrary node")
	}
	_, err := clusters.Resize(ctx, api, c.UUID, clusters.ResizeOpts{NodeCount: &count, NodesToRemove: remove, NodeGroup: g.UUID}).Extract()
	return err
}
