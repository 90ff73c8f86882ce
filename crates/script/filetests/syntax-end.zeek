# stages: rich
event zeek_init() {
 print 1;
