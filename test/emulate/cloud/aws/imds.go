package aws

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// metadataServer is the metadata service of one instance. On AWS every
// instance finds its own at 169.254.169.254; here each has a loopback port.
type metadataServer struct {
	cloud    *Cloud
	id       string
	listener net.Listener
	server   *http.Server

	mu     sync.Mutex
	tokens map[string]time.Time // IMDSv2 session tokens and their ends
	role   *credentials
}

// IMDS returns the endpoint of an instance's metadata service
// (AWS_EC2_METADATA_SERVICE_ENDPOINT). It listens from the first call on
// until the instance terminates.
func (c *Cloud) IMDS(instanceID string) (endpoint string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.world.instances[instanceID]
	switch {
	case i == nil || i.state == "terminated":
		return "", fmt.Errorf("metadata of instance %s: no such instance, or terminated", instanceID)
	case c.closed:
		return "", fmt.Errorf("metadata of instance %s: the cloud is closed", instanceID)
	}
	m := c.metadata[instanceID]
	if m == nil {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("metadata of instance %s: %w", instanceID, err)
		}
		m = &metadataServer{cloud: c, id: instanceID, listener: listener, tokens: map[string]time.Time{}}
		m.server = &http.Server{Handler: m, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
		c.metadata[instanceID] = m
		go m.server.Serve(listener)
	}
	return "http://" + m.listener.Addr().String(), nil
}

func (m *metadataServer) close() { m.server.Close() }

const (
	tokenHeader = "X-Aws-Ec2-Metadata-Token"
	ttlHeader   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	maxTokenTTL = 21600
)

func (m *metadataServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/latest")
	if path == "/api/token" {
		m.token(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "405 - Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	m.mu.Lock()
	ends, ok := m.tokens[r.Header.Get(tokenHeader)]
	m.mu.Unlock()
	v1 := r.Header.Get(tokenHeader) == "" && m.allowsV1()
	if !v1 && (!ok || time.Now().After(ends)) {
		http.Error(w, "401 - Unauthorized", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	if body, ok := m.lookup(path); ok {
		io.WriteString(w, body)
		return
	}
	http.Error(w, "404 - Not Found", http.StatusNotFound)
}

func (m *metadataServer) allowsV1() bool {
	m.cloud.mu.Lock()
	defer m.cloud.mu.Unlock()
	i := m.cloud.world.instances[m.id]
	return i != nil && i.lt.HTTPTokens == "optional"
}

// token answers PUT /latest/api/token. As on AWS, requests that went through
// a proxy get none.
func (m *metadataServer) token(w http.ResponseWriter, r *http.Request) {
	ttl, err := strconv.Atoi(r.Header.Get(ttlHeader))
	switch {
	case r.Method != http.MethodPut:
		http.Error(w, "405 - Method Not Allowed", http.StatusMethodNotAllowed)
	case r.Header.Get("X-Forwarded-For") != "":
		http.Error(w, "403 - Forbidden", http.StatusForbidden)
	case err != nil || ttl < 1 || ttl > maxTokenTTL:
		http.Error(w, "400 - Bad Request", http.StatusBadRequest)
	default:
		m.cloud.mu.Lock()
		token := m.cloud.hex(56)
		m.cloud.mu.Unlock()
		m.mu.Lock()
		m.tokens[token] = time.Now().Add(time.Duration(ttl) * time.Second)
		m.mu.Unlock()
		w.Header().Set(ttlHeader, strconv.Itoa(ttl))
		io.WriteString(w, token)
	}
}

// lookup answers one path. A path that others begin with is a directory and
// answers with what is in it.
func (m *metadataServer) lookup(path string) (string, bool) {
	c := m.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.world.instances[m.id]
	if i == nil {
		return "", false
	}
	switch path {
	case "/user-data":
		return i.lt.UserData, i.lt.UserData != ""
	case "/dynamic/instance-identity/document":
		return c.identityDocument(i), true
	}
	rest, ok := strings.CutPrefix(path, "/meta-data")
	if !ok {
		return "", false
	}
	leaves := m.leaves(i)
	rest = strings.Trim(rest, "/")
	if leaf, ok := leaves[rest]; ok {
		return leaf, true
	}
	prefix := rest + "/"
	if rest == "" {
		prefix = ""
	}
	var entries []string
	for _, name := range sortedKeys(leaves) {
		below, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if dir, _, more := strings.Cut(below, "/"); more {
			below = dir + "/"
			if rest == "iam/security-credentials" || rest == "tags/instance" {
				below = name[len(prefix):]
			}
		}
		if len(entries) == 0 || entries[len(entries)-1] != below {
			entries = append(entries, below)
		}
	}
	return strings.Join(entries, "\n"), len(entries) > 0
}

func (m *metadataServer) leaves(i *instance) map[string]string {
	c := m.cloud
	dns := c.dnsOf(i)
	nic := "network/interfaces/macs/" + i.mac + "/"
	out := map[string]string{
		"ami-id": i.lt.ImageID, "ami-launch-index": "0", "hostname": dns, "instance-action": "none",
		"instance-id": i.id, "instance-life-cycle": "on-demand", "instance-type": i.instanceType,
		"local-hostname": dns, "local-ipv4": i.ip, "mac": i.mac, "reservation-id": i.reservation,
		"placement/availability-zone": i.zone, "placement/availability-zone-id": c.zoneID(i.zone), "placement/region": c.opts.Region,
		"services/domain": "amazonaws.com", "services/partition": "aws",
		"autoscaling/target-lifecycle-state": lifecycleTarget(i.lifecycle),
		nic + "device-number":                "0", nic + "interface-id": i.eni, nic + "local-hostname": dns, nic + "local-ipv4s": i.ip,
		nic + "mac": i.mac, nic + "owner-id": c.opts.AccountID, nic + "subnet-id": c.Subnet(i.zone),
		nic + "subnet-ipv4-cidr-block": c.cidr(i.zone), nic + "vpc-id": c.vpc(), nic + "vpc-ipv4-cidr-block": c.vpcCIDR(),
	}
	if i.publicIP != "" {
		out["public-ipv4"], out["public-hostname"] = i.publicIP, c.publicDNS(i.publicIP)
		out[nic+"public-ipv4s"], out[nic+"public-hostname"] = i.publicIP, c.publicDNS(i.publicIP)
	}
	if i.ipv6 != "" {
		out["ipv6"], out[nic+"ipv6s"] = i.ipv6, i.ipv6
	}
	if len(i.lt.SecurityGroups) > 0 {
		out["security-groups"] = strings.Join(i.lt.SecurityGroups, "\n")
	}
	if i.lt.MetadataTags {
		for k, v := range i.tags {
			out["tags/instance/"+k] = v
		}
	}
	if p := i.lt.InstanceProfile; p != "" {
		out["iam/info"] = toJSON(map[string]string{"Code": "Success", "LastUpdated": brief(i.launched),
			"InstanceProfileArn": "arn:aws:iam::" + c.opts.AccountID + ":instance-profile/" + p,
			"InstanceProfileId":  fmt.Sprintf("AIPA%016X", c.fingerprint(p))})
		out["iam/security-credentials/"+p] = m.roleCredentials(i)
	}
	return out
}

func lifecycleTarget(lifecycle string) string {
	switch {
	case strings.HasPrefix(lifecycle, "Terminat"):
		return "Terminated"
	case lifecycle == "Standby":
		return "Standby"
	}
	return "InService"
}

// roleCredentials hands out the instance profile's credentials and renews
// them well before they end. The caller holds the cloud's mu.
func (m *metadataServer) roleCredentials(i *instance) string {
	if m.role == nil || m.role.revoked || time.Until(m.role.Expires) < 5*time.Minute {
		m.role = m.cloud.mint("ASIA", i.lt.InstanceProfile+"/"+i.id, 6*time.Hour)
	}
	return toJSON(map[string]string{
		"Code": "Success", "LastUpdated": brief(time.Now()), "Type": "AWS-HMAC",
		"AccessKeyId": m.role.AccessKeyID, "SecretAccessKey": m.role.SecretAccessKey,
		"Token": m.role.SessionToken, "Expiration": brief(m.role.Expires),
	})
}

func (c *Cloud) identityDocument(i *instance) string {
	return toJSON(map[string]any{
		"accountId": c.opts.AccountID, "architecture": c.types[i.instanceType].Arch, "availabilityZone": i.zone,
		"billingProducts": nil, "devpayProductCodes": nil, "marketplaceProductCodes": nil,
		"imageId": i.lt.ImageID, "instanceId": i.id, "instanceType": i.instanceType, "kernelId": nil,
		"pendingTime": brief(i.launched), "privateIp": i.ip, "ramdiskId": nil, "region": c.opts.Region, "version": "2017-09-30",
	})
}

func toJSON(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("aws: " + err.Error())
	}
	return string(b)
}
