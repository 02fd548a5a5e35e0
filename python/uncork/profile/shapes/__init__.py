"""What `statement_shape` is made of. Pure: protobuf trees of libpg_query in, parts of a shape out."""
