DELETE FROM reported WHERE cluster = :cluster;
