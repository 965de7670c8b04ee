module sluice.example/clients

go 1.22

require (
	github.com/customerio/cdp-analytics-go v0.0.2
	github.com/customerio/go-customerio/v3 v3.8.0
	github.com/rudderlabs/analytics-go/v4 v4.2.3
	github.com/segmentio/analytics-go/v3 v3.3.0
)
