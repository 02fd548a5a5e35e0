module field

go 1.23

require miniflux.app/v2 v2.2.0
