package aws

import (
	"strings"
	"time"
)

// Credentials are what a caller signs with.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string    // "" for a user's static key
	Expires         time.Time // zero for never
	ARN             string    // who STS says it is
}

type credentials struct {
	Credentials
	userID  string
	revoked bool
}

// mint makes credentials. The caller holds c.mu, or is New.
func (c *Cloud) mint(prefix, role string, ttl time.Duration) *credentials {
	k := &credentials{Credentials: Credentials{
		AccessKeyID:     prefix + strings.ToUpper(c.hex(16)),
		SecretAccessKey: c.hex(40),
		ARN:             "arn:aws:iam::" + c.opts.AccountID + ":user/tester",
	}}
	k.userID = "AIDA" + strings.ToUpper(c.hex(16))
	if prefix == "ASIA" {
		k.SessionToken = c.hex(120)
		k.Expires = time.Now().Add(ttl)
		k.ARN = "arn:aws:sts::" + c.opts.AccountID + ":assumed-role/" + role
		k.userID = "AROA" + strings.ToUpper(c.hex(16)) + ":" + role[strings.LastIndex(role, "/")+1:]
	}
	c.keys[k.AccessKeyID] = k
	return k
}

// RootCredentials are those of Env.
func (c *Cloud) RootCredentials() Credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys[c.rootKey].Credentials
}

// IssueCredentials makes temporary credentials of a role session
// ("role/session") that expire after ttl.
func (c *Cloud) IssueCredentials(role string, ttl time.Duration) Credentials {
	if !strings.Contains(role, "/") {
		role += "/session"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mint("ASIA", role, ttl).Credentials
}

// IssueForeignCredentials makes temporary credentials of a role session of another account.
func (c *Cloud) IssueForeignCredentials(account, role string, ttl time.Duration) Credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.mint("ASIA", role, ttl)
	k.ARN = strings.Replace(k.ARN, c.opts.AccountID, account, 1)
	return k.Credentials
}

// RevokeKey makes an access key unknown from now on; restore it with
// RestoreKey. An ID that was never issued is unknown anyway.
func (c *Cloud) RevokeKey(accessKeyID string) { c.setRevoked(accessKeyID, true) }

// RestoreKey undoes RevokeKey and ExpireKey.
func (c *Cloud) RestoreKey(accessKeyID string) { c.setRevoked(accessKeyID, false) }

func (c *Cloud) setRevoked(id string, revoked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.keys[id]; k != nil {
		k.revoked = revoked
		if !revoked && !k.Expires.IsZero() {
			k.Expires = time.Now().Add(time.Hour)
		}
	}
}

// ExpireKey lets temporary credentials be expired from now on.
func (c *Cloud) ExpireKey(accessKeyID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.keys[accessKeyID]; k != nil {
		k.Expires = time.Now().Add(-time.Second)
	}
}
