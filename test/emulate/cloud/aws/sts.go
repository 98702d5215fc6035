package aws

import (
	"strings"
	"time"
)

func stsActions() map[string]action {
	return map[string]action{
		"GetCallerIdentity": {query: (*Cloud).callerIdentity},
		"AssumeRole": {write: true, query: (*Cloud).assumeRole, params: []string{"RoleArn", "RoleSessionName", "DurationSeconds",
			"ExternalId", "Policy"}},
	}
}

func (c *Cloud) callerIdentity(r *request) ([]el, *apiError) {
	return []el{x("Arn", r.who.ARN), x("UserId", r.who.userID), x("Account", strings.Split(r.who.ARN, ":")[4])}, nil
}

func (c *Cloud) assumeRole(r *request) ([]el, *apiError) {
	arn, session := r.p.str("RoleArn"), r.p.str("RoleSessionName")
	_, role, ok := strings.Cut(arn, ":role/")
	if !ok || session == "" {
		return nil, fail("ValidationError", arn+" is invalid")
	}
	seconds, err := r.p.number("DurationSeconds", 3600)
	if err != nil {
		return nil, err
	}
	k := c.mint("ASIA", role+"/"+session, time.Duration(seconds)*time.Second)
	return []el{
		x("AssumedRoleUser", x("AssumedRoleId", k.userID), x("Arn", k.ARN)),
		x("Credentials", x("AccessKeyId", k.AccessKeyID), x("SecretAccessKey", k.SecretAccessKey),
			x("SessionToken", k.SessionToken), x("Expiration", k.Expires)),
	}, nil
}
